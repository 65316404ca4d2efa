package permission

import (
	"slices"
	"strings"
)

// fileWriters put text into files that their words name.
var fileWriters = set("cp mv ln link install dd sort split csplit sed gsed awk gawk mawk nawk curl wget tee rsync patch ed ex find")

// instructed are programs that read what they run from files of these names.
var instructed = map[string]map[string]bool{
	"make": set("Makefile makefile GNUmakefile"), "gmake": set("Makefile makefile GNUmakefile"), "npm": set("package.json .npmrc"), "pnpm": set("package.json .npmrc"),
	"yarn": set("package.json .yarnrc .yarnrc.yml"), "bun": set("package.json"), "just": set("justfile Justfile .justfile"), "task": set("Taskfile.yml Taskfile.yaml"),
	"rake": set("Rakefile"), "gradle": set("build.gradle settings.gradle build.gradle.kts"), "mvn": set("pom.xml"), "ant": set("build.xml"), "cargo": set("build.rs config.toml Cargo.toml"),
	"pytest": set("conftest.py pytest.ini pyproject.toml"), "tox": set("tox.ini"), "ninja": set("build.ninja"), "go": set("go.mod"), "ctest": set("CTestTestfile.cmake"), "cmake": set("CMakeLists.txt"),
}

// writtenFiles are the names, without their folders, of what the line writes; computed tells that it writes somewhere computed.
type writtenFiles struct {
	names    map[string]bool
	git      bool // something below .git
	computed bool
}

func (w *walker) written() writtenFiles {
	out := writtenFiles{names: map[string]bool{}, computed: w.computedTarget}
	for _, t := range w.out.Targets {
		if !t.Write || strings.HasPrefix(t.Path, "/dev/") {
			continue
		}
		out.names[baseName(t.Path)] = true
		out.git = out.git || slices.Contains(strings.Split(t.Path, "/"), ".git") || strings.HasPrefix(baseName(t.Path), ".git")
	}
	return out
}

// writes tells whether a part, before the one that runs the file, may write a file of that name.
func writes(p SimpleCommand, file string) bool {
	program := strings.ToLower(baseName(p.Words[0]))
	if !fileWriters[program] {
		return false
	}
	for i, word := range p.Words[1:] {
		switch program {
		case "sort":
			if strings.HasSuffix(word, file) && (strings.HasPrefix(word, "-o") || strings.HasPrefix(word, "--o") || strings.HasPrefix(p.Words[i], "-o") || strings.HasPrefix(p.Words[i], "--o")) {
				return true
			}
		case "split", "csplit":
			if !strings.HasPrefix(word, "-") && strings.HasPrefix(file, baseName(word)) {
				return true
			}
		case "sed", "gsed", "awk", "gawk", "mawk", "nawk":
			if strings.Contains(word, file) {
				return true
			}
		case "find":
			if strings.HasPrefix(p.Words[i], "-fprint") || p.Words[i] == "-fls" {
				return baseName(word) == file
			}
		default:
			if baseName(strings.TrimPrefix(word, "of=")) == file || strings.HasSuffix(word, "="+file) {
				return true
			}
		}
	}
	return false
}

// freshPrograms finds a program, a script or a file of instructions that the same line writes: what it will do is nowhere to be seen yet.
func (w *walker) freshPrograms() {
	wrote := w.written()
	for i, p := range w.out.Parts {
		if len(p.Words) == 0 {
			continue
		}
		if w.runsWritten(i, wrote) {
			w.raiseOpaque(strings.Join(p.Words, " "), "runs a file that this very line writes")
		}
	}
}

func (w *walker) runsWritten(at int, wrote writtenFiles) bool {
	words := w.out.Parts[at].Words
	program := strings.ToLower(baseName(words[0]))
	if program == "git" && wrote.git {
		return true
	}
	for name := range instructed[program] {
		if wrote.names[name] {
			return true
		}
	}
	var files []string
	if strings.Contains(words[0], "/") {
		files = append(files, words[0])
	}
	if runsFiles(program) || instructed[program] != nil {
		files = append(files, words[1:]...)
	}
	for _, f := range files {
		name := baseName(f)
		if wrote.names[name] {
			return true
		}
		if strings.ContainsAny(f, "$*?[") && (len(wrote.names) > 0 || wrote.computed) && !strings.HasPrefix(f, "-") {
			return true
		}
		if wrote.computed && !strings.HasPrefix(f, "-") && runsFiles(program) {
			return true
		}
		if strings.HasPrefix(f, "-") || name == "" {
			continue
		}
		for _, before := range w.out.Parts[:at] {
			if len(before.Words) > 0 && writes(before, name) {
				return true
			}
		}
	}
	return false
}
