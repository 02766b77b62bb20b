import type { OnPaths } from '../data/types';
import { plural, withCommas } from '../format';

// Above everything that is added up from call paths.
export function MissingCalls({ of }: { of: OnPaths }) {
  if (!of.missing_calls) return null;
  return (
    <div class="banner" role="note">
      {withCommas(of.missing_calls)} of {plural(of.made_calls ?? 0, 'call')} found no place in the table of call paths: their time stands at their callers.
    </div>
  );
}
