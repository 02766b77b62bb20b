# Rust: panics caught, in threads, uncaught, in destructors; iterators, strings, maps, channels.
. "$(dirname "$0")/lib.sh"
need rustc
compile panics.rs <<'C'
use std::{collections::HashMap, panic, sync::mpsc, thread};
struct Loud(u32);
impl Drop for Loud { fn drop(&mut self) { if self.0 % 100 == 0 { println!("drop {}", self.0); } } }
fn deep(n: u32) -> u32 { let _guard = Loud(n); if n == 0 { panic!("bottom") } deep(n - 1) + 1 }
fn main() {
    let mut caught = 0;
    for i in 0..300u32 { if panic::catch_unwind(|| if i % 3 == 0 { deep(i) } else { i }).is_err() { caught += 1; } }
    println!("caught {}", caught);
    let vector: Vec<u32> = (0..10).collect();
    let index = std::env::args().count() + 20;
    println!("{:?}", panic::catch_unwind(|| vector[index]).is_err());
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..8u64).map(|t| { let s = sender.clone(); thread::spawn(move || { for i in 0..1000 { s.send(t * i).unwrap(); } if t == 3 { panic!("in thread") } t }) }).collect();
    drop(sender);
    println!("{}", receiver.iter().sum::<u64>());
    for t in threads { println!("{:?}", t.join().map_err(|e| e.downcast_ref::<&str>().map(|s| s.to_string()))); }
    let mut counts = HashMap::new();
    for word in "a b a c b a".split(' ') { *counts.entry(word).or_insert(0) += 1; }
    let mut sorted: Vec<_> = counts.into_iter().collect(); sorted.sort(); println!("{:?}", sorted);
    if std::env::args().count() > 1 { None::<u32>.expect("uncaught"); }
}
C
same_out "$T/panics"
STATUS=101 same_out "$T/panics" fail
build "$T/panics.rs" "$T/panics" -C panic=abort
STATUS=134 same_out "$T/panics"
