# Words of a text: regular expressions, hashes, closures, sorting, formatting.
use strict;
use warnings;

my ($file, $rounds) = @ARGV;
open my $in, '<', $file or die "$file: $!";
my @lines = <$in>;
for my $round (1 .. $rounds) {
  my (%count, %first);
  my $vowels = 0;
  for my $line (@lines) {
    while ($line =~ /(\w+)/g) {
      my $word = lc $1;
      $count{$word}++;
      $first{substr $word, 0, 1} .= '.' if length $word > 6;
    }
    ($vowels += tr/aeiou//) for $line;
    (my $copy = $line) =~ s/(\w)(\w*)/\u$1$2/g;
    $vowels += length($copy) if $copy =~ /^[A-Z][^,]*, [A-Z]\w+ing\b/;
  }
  my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 4];
  printf "%d %d %s\n", $round, $vowels, join ' ', map { sprintf '%s=%d', $_, $count{$_} } @top;
  print join(',', map { "$_:" . length $first{$_} } sort keys %first), "\n";
}
