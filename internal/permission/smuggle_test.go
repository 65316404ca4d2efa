package permission

import "testing"

// smuggled are lines that run victim although no simple command of theirs begins with it, or only for some reading of the line.
var smuggled = []string{
	// an option that an expansion brings
	`x=-exec; find . -maxdepth 0 $x victim \;`, `x='-exec victim'; find . -maxdepth 0 $x \;`, `set -- -exec victim; find . -maxdepth 0 "$@" \;`,
	`a=(-exec victim); find . -maxdepth 0 "${a[@]}" \;`, `read x <<< '-exec victim'; find . -maxdepth 0 $x \;`, `echo -exec victim | { read x; find . -maxdepth 0 $x \; ; }`,
	`for x in -exec; do find . -maxdepth 0 $x victim \; ; done`, `x='-e1evictim'; sed p $x /dev/null ../../lines/00000`, `x='-e1evictim'; sed -n p "$x" ../../lines/00000`,
	`x=--compress-program=./victim; sort -S1k $x /bin/bash`, `x=exec; find . -maxdepth 0 -$x victim \;`, `printf -v x '\055exec'; find . -maxdepth 0 $x victim \;`,
	`x=q-exec; find . -maxdepth 0 ${x:1} victim \;`, `x=q-exec; find . -maxdepth 0 ${x#q} victim \;`, `find . -maxdepth 0 ${q:--exec} victim \;`, `find . -maxdepth 0 $(echo -exec) victim \;`,
	`x='\055exec'; find . -maxdepth 0 ${x@E} victim \;`, `xargs sort -S1k /bin/bash <<< --compress-program=./victim`, `echo -exec victim ';' | xargs find . -maxdepth 0`,
	`x=-exec bash -c 'find . -maxdepth 0 $x victim \;'`, `v='x[$(victim)]' bash -c ': $((v))'`, `x=--compress-program=./victim bash -c 'sort -S1k $x /bin/bash'`,
	`find . -maxdepth 0 {-exec,victim} \;`, `sort -S1k /bin/bash {--compress-program=./victim,-u}`,
	// names, options and code in variables
	"POSIXLY_CORRECT=1\nBASH_ALIASES[ls]=victim\nls", "bash --posix -c 'BASH_ALIASES[ls]=victim\nls'", `BASH_CMDS[ls]=./victim; ls`,
	// arithmetic that reads a text made of harmless pieces
	`v='x[$(victim)]'; : ${!v}`, `printf -v v 'x[\x24(victim)]'; : $((v))`, `printf -v v 'x[\x24(victim)]'; [[ v -eq 0 ]]`, `v='x[$'; v+='(victim)]'; : $((v))`,
	`a='$' b='(victim)'; v="x[$a$b]"; : $((v))`,
	// files that the line writes and runs
	`(cd . && echo victim > f); bash ./f`, `x=f; echo victim > $x; bash f`, `echo victim > f; bash "$PWD/f"`, `sed -n 'w s' <<< victim; bash s`, `awk '{print > "s"}' <<< victim; bash s`,
	`sort -o s <<< victim; bash s`, `find . -maxdepth 0 -fprintf s victim; bash s`,
	// programs out of a process substitution, and scripts that rules name
	`bash -- <(echo victim)`, `bash ./victim`, `sh victim`, `env bash victim`,
}

// unrun is the same for programs that the box of the comparison does not hold.
var unrun = []string{
	`x='-c alias.y=!victim y'; git $x`, `x=--to-command=victim; tar xf a.tar $x`, `x=--pre=victim; rg $x a f`,
	`EDITOR=victim git config -e`, `GIT_EDITOR=victim git commit`, `GIT_SSH=./victim git fetch`, `GIT_SSH_COMMAND="victim -x" git fetch`, `PAGER=victim man ls`, `x=victim; PAGER=$x man ls`,
	`GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.y GIT_CONFIG_VALUE_0='!victim' git y`, `TAR_OPTIONS=--to-command=victim tar xf a.tar`, `export GIT_PAGER=victim; git log`,
	`printf '[alias]\ny=!victim\n' >> .git/config; git y`, `echo victim > .git/hooks/pre-commit; git commit -m x`, `echo 'all:;victim' > Makefile; make`, `echo 'all:;victim' > m; make -f m`,
	`echo '{"scripts":{"t":"victim"}}' > package.json; npm run t`, `dd of=s <<< victim; bash s`, `echo victim | cp /dev/stdin s; bash s`, `split - s <<< victim; bash saa`,
	`make -f/dev/stdin <<< 'all:;victim'`, `make --file=/dev/stdin <<< 'all:;victim'`, `make -f <(echo 'all:;victim')`, `make -f<(echo 'all:;victim')`,
	`perl -e 'system("victim")'`, `perl <<< 'system "victim"'`, `node -e 'require("child_process").execSync("victim")'`, `python3 -c 'import os; os.system("victim")'`, `echo 'import os; os.popen("victim")' | python3`,
	`python3 -m timeit 'import os; os.system("victim")'`, `xargs perl -e <<< "'system(\"victim\")'"`, `perl -e "$x"`,
	`/lib64/ld-linux-x86-64.so.2 /bin/bash -c victim`, `/lib64/ld-linux-x86-64.so.2 ./victim`, `choom -n 0 -- victim`, `prlimit --nofile=100 victim`, `ssh-agent victim`, `run-parts .`, `numactl -N 0 victim`, `gosu nobody victim`, `gtimeout 5 victim`,
	`git rebase -ix victim`, `git -c tar.x.command=victim archive --format=x HEAD`, `git clone -ccore.fsmonitor=victim . x`, `git grep -nOvictim x`, `git daemon --access-hook=victim`,
	`wget -e use_askpass=./victim http://h/x`, `CARGO_BUILD_RUSTC=victim cargo build`, `npm config set script-shell victim`, `npm run x --script-shell victim`, `npx -p x victim`, `yarn victim`, `bun x victim`, `uvx victim`,
	`conda run -n x victim`, `mise x -- victim`, `docker run x victim`, `docker run --entrypoint victim x`, `docker exec -it x victim`, `docker compose exec x victim`, `kubectl exec x -- victim`, `perf record -o x victim`,
	`rsync --rs victim a h:`, `tcpdump -z victim -w x`, `osascript -e 'do shell script "victim"'`, `fd -Xvictim`, `fd -Hx victim`, `make CC=victim`, `make MAKE=victim`, "make X='`victim`'", `go env -w GOFLAGS=-toolexec=victim`,
	`tar -cIvictim -f a.tar x`, `tar cIf victim a.tar x`, `tar cfF a.tar victim -L1 x`, `gcc -wrapper victim,-x -c a.c`,
}

func TestNothingSmugglesADeniedProgramIn(t *testing.T) {
	if ran := checkLines(t, smuggled); ran < len(smuggled)-2 {
		t.Errorf("only %d of %d lines ran the program; the comparison shows too little", ran, len(smuggled))
	}
	for _, line := range append(append([]string(nil), smuggled...), unrun...) {
		for name, decide := range permissive() {
			if d := decide(line); d.Verdict == Allow {
				t.Errorf("%s: %q is allowed: %s", name, line, d.Reason)
			}
		}
	}
}

// Everyday lines must not be taken for smuggling: they stay what they are under auto and yolo with deny rules.
func TestEverydayLinesAreNoSmuggling(t *testing.T) {
	for _, line := range []string{
		`for f in *.go; do sed -n 1,5p "$f"; done`, `for f in a b; do gofmt -l $f; done`, `x=main.go; sed -i s/a/b/ $x`, `d=pkg; find $d -name '*.go'`, `git log --format="$fmt"`,
		`m='fix: - a dash'; git commit -m "$m"`, `find . -name "$n"; echo -n x`, `git add $f; git commit -m 'a - b'`, `go test ./$p/...`, `n=5; git log -n $n`, `tar -czf out.tgz $dir`,
		`git diff > f.patch; git apply --check f.patch`, `go build -o bin/x . && ./bin/x`, `cp a.txt b.txt; go test ./...`, `echo x > notes.md; git add notes.md`, `echo x > a.txt; bash build.sh`,
		`export CGO_ENABLED=0; go build ./...`, `git ls-files | xargs sed -n 1p`, `v=a-b; find . -name x $v`, `python3 tools/gen.py > out.json; make test`, `i=$((i+1)); git log -$i`,
		`tar -xzf a.tgz -C /tmp/x`, `tar xzf a.tgz`, `gcc -Wall -o a a.c`, `make CC=gcc CXX=g++`, `docker run --rm -v x:/y image ls`, `npm run build -- --watch`, `git grep -n x`, `fd -e go`, `wget -q http://h/x`, `git clone -b main u x`,
	} {
		if c := Classify(line); c.Opaque {
			t.Errorf("%q is taken for hiding what runs: %s in %q", line, c.Why, c.Offending)
		}
		for name, decide := range permissive() {
			if d := decide(line); d.Verdict != Allow {
				t.Errorf("%s: %q is %s: %s", name, line, d.Verdict, d.Reason)
			}
		}
	}
	p := NewPolicy(Config{Deny: []Rule{{Text: "Bash(victim:*)"}}})
	for _, line := range []string{`python3 -c 'print(1)'`, `node -p 1+1`, `EDITOR=true git commit --amend`, `GIT_PAGER=cat git log`, `CC=clang make`, `git commit -m "$(cat msg.txt)"`} {
		if d := p.Decide(bashCall(line), Situation{Posture: PostureYolo, Surface: Headless}); d.Verdict != Allow {
			t.Errorf("yolo: %q is %s: %s", line, d.Verdict, d.Reason)
		}
	}
}
