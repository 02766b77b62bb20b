// Colours of source text, line by line: what a colour spans over several lines is opened anew on each.
import hljs from 'highlight.js/lib/core';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import fortran from 'highlight.js/lib/languages/fortran';
import go from 'highlight.js/lib/languages/go';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';

for (const [name, language] of Object.entries({ c, cpp, fortran, go, python, rust })) hljs.registerLanguage(name, language);

const languages: Record<string, string> = {
  c: 'c', h: 'cpp', cc: 'cpp', cpp: 'cpp', cxx: 'cpp', hpp: 'cpp', hh: 'cpp', inc: 'cpp', tcc: 'cpp', rs: 'rust', go: 'go', py: 'python', f90: 'fortran', f: 'fortran',
};

const largest = 2_000_000; // characters: beyond, colours are not worth the wait

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

// Safe HTML for each line.
export function highlightLines(lines: string[], file: string): string[] {
  const extension = file.slice(file.lastIndexOf('.') + 1).toLowerCase();
  const language = languages[extension] ?? (file.includes('/c++/') ? 'cpp' : undefined);
  const text = lines.join('\n');
  if (!language || text.length > largest) return lines.map(escapeHtml);
  return splitLines(hljs.highlight(text, { language, ignoreIllegals: true }).value);
}

export function splitLines(html: string): string[] {
  const open: string[] = [];
  return html.split('\n').map((line) => {
    const before = open.join('');
    for (const tag of line.match(/<span[^>]*>|<\/span>/g) ?? [])
      if (tag === '</span>') open.pop();
      else open.push(tag);
    return before + line + '</span>'.repeat(open.length);
  });
}
