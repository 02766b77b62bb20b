# Go: goroutines, channels, garbage collection, panics recovered, a nil pointer, maps, defer, exit status.
. "$(dirname "$0")/lib.sh"
need go
compile all.go <<'C'
package main

import ("fmt"; "os"; "os/exec"; "os/signal"; "runtime"; "sort"; "strings"; "sync"; "syscall"; "time")

type node struct { next *node; data [10]int }
func try(name string, f func()) { defer func() { if r := recover(); r != nil { fmt.Println(name, "recovered:", r) } }(); f() }
func deep(n int) int { var room [100]int; room[n%100] = n; if n == 0 { return 0 }; return deep(n-1) + room[n%100] }
func main() {
	var group sync.WaitGroup; var mutex sync.Mutex; results := make(chan int, 100); total := 0
	for g := 0; g < 200; g++ { group.Add(1); go func(g int) { defer group.Done(); sum := 0; for i := 0; i < 2000; i++ { sum += i * g; if i%500 == 0 { runtime.Gosched() } }; results <- sum }(g) }
	go func() { group.Wait(); close(results) }()
	for r := range results { mutex.Lock(); total += r; mutex.Unlock() }
	fmt.Println(total)
	var list *node
	for i := 0; i < 200000; i++ { n := &node{data: [10]int{i}}; if i%100 == 0 { n.next = list; list = n }; if i%50000 == 0 { runtime.GC() } }
	count := 0; for n := list; n != nil; n = n.next { count += n.data[0] }; fmt.Println(count)
	var null *node; var m map[string]int; zero := len(os.Args) - len(os.Args)
	for i := 0; i < 3; i++ {
		try("nil", func() { null.data[3] = 1 }); try("map", func() { m["a"] = 1 }); try("divide", func() { fmt.Println(1 / zero) })
		try("index", func() { fmt.Println([]int{1, 2}[zero+5]) }); try("own", func() { panic(fmt.Sprint("panic ", i)) })
	}
	fmt.Println(deep(100000))
	words := map[string]int{}; for _, w := range strings.Fields(strings.Repeat("the quick brown fox the ", 1000)) { words[w]++ }
	keys := []string{}; for k := range words { keys = append(keys, k) }; sort.Strings(keys); for _, k := range keys { fmt.Print(k, "=", words[k], " ") }; fmt.Println()
	out, err := exec.Command("sh", "-c", "echo from a child; exit 3").Output(); fmt.Printf("%q %v\n", out, err)
	signals := make(chan os.Signal, 1); signal.Notify(signals, syscall.SIGUSR1); syscall.Kill(os.Getpid(), syscall.SIGUSR1); fmt.Println(<-signals)
	ticker := time.NewTicker(time.Millisecond); for i := 0; i < 20; i++ { <-ticker.C }
	spin := make(chan bool); go func() { for i := 0; ; i++ { select { case <-spin: return; default: } } }(); time.Sleep(20 * time.Millisecond); spin <- true
	if len(os.Args) > 1 { var f func(); f() }
	os.Exit(7)
}
C
STATUS=7 same "$T/all"
STATUS=2 same_status "$T/all" crash
GOMAXPROCS=8 GOGC=5 STATUS=7 same "$T/all"
