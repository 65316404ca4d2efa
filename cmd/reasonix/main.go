// Command reasonix is the one binary: the host, the headless run and the tools around them.
package main

func main() {}
