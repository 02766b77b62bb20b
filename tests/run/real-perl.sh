# Perl: regular expressions, hashes, sorting, fork, pipes, signals, eval.
. "$(dirname "$0")/lib.sh"
need perl
cat >"$T/all.pl" <<'P'
use strict; use warnings; $| = 1;
my %count; $count{$_ % 97}++ for 1 .. 20000; print join(',', map { "$_=$count{$_}" } (sort { $a <=> $b } keys %count)[0 .. 5]), "\n";
my $text = join ' ', map { "word$_" } 1 .. 3000; my $n = () = $text =~ /\b(\w+?)(\d)\2\b/g; print "$n\n";
(my $copy = $text) =~ s/(\d+)/sprintf '%x', $1 * 3/ge; print length $copy, " ", substr($copy, 500, 20), "\n";
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(18), "\n";
eval { die { code => 5 } }; print "died $@->{code}\n"; eval { my $x = 1 / ($n - $n) }; print $@;
local $SIG{USR1} = sub { print "signal\n" }; kill USR1 => $$; local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 10 while 1 }; print $@;
my $pid = fork // die; if (!$pid) { exit 9 } waitpid $pid, 0; print $? >> 8, "\n";
open my $pipe, '-|', 'seq 5 | tac' or die; print <$pipe>; close $pipe; print `echo backticks; exit 2`, $? >> 8, "\n";
print join(' ', map { sprintf '%s', unpack 'H*', pack 'w', $_ } 1, 300, 70000), "\n"; printf "%.10g %s\n", sqrt(2) * 1e10, 2 ** 70; exit 13;
P
STATUS=13 same perl "$T/all.pl"
