package sandbox

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// attempt is one of the attempts on the full box, made again on the reduced one. It holds, or the gap of ReducedGaps says why not.
type attempt struct {
	f    func(*testing.T)
	gap  string
	some map[string]string // gaps of some of its parts, by their names
	may  bool              // it holds for some accounts
}

// attempts by the name of their test. What is left out stands in fullOnly with the reason.
var attempts map[string]attempt

func init() { // not in the declaration: the tests themselves look into it
	attempts = map[string]attempt{
		"TestAttemptS01LinkOutOfTheWorkspace":           {f: TestAttemptS01LinkOutOfTheWorkspace},
		"TestAttemptS05HardLinkToAFileOutside":          {f: TestAttemptS05HardLinkToAFileOutside},
		"TestAttemptS06HardLinkToGitConfig":             {f: TestAttemptS06HardLinkToGitConfig, gap: "protected-files"},
		"TestAttemptS10ReachIntoTheHostProcess":         {f: TestAttemptS10ReachIntoTheHostProcess},
		"TestAttemptS12HooksAndConfig":                  {f: TestAttemptS12HooksAndConfig, gap: "protected-files"},
		"TestAttemptS14WorktreePointer":                 {f: TestAttemptS14WorktreePointer, gap: "protected-files"},
		"TestAttemptS14PlantedPointerOpensNothing":      {f: TestAttemptS14PlantedPointerOpensNothing},
		"TestAttemptS14SubmoduleHooks":                  {f: TestAttemptS14SubmoduleHooks, gap: "protected-files"},
		"TestAttemptS15PlantedBareRepository":           {f: TestAttemptS15PlantedBareRepository},
		"TestAttemptS17MovingGitAway":                   {f: TestAttemptS17MovingGitAway, gap: "protected-files"},
		"TestAttemptS21WorkingDirectoryOutside":         {f: TestAttemptS21WorkingDirectoryOutside},
		"TestAttemptS24SocketOfAHostService":            {f: TestAttemptS24SocketOfAHostService, gap: "file-names", may: true},
		"TestAttemptS26SessionBus":                      {f: TestAttemptS26SessionBus},
		"TestAttemptS28AbstractSocketAndLoopback":       {f: TestAttemptS28AbstractSocketAndLoopback},
		"TestAttemptS30RemountTheRoot":                  {f: TestAttemptS30RemountTheRoot},
		"TestAttemptS31NestedNamespaces":                {f: TestAttemptS31NestedNamespaces},
		"TestAttemptS32KillTheHost":                     {f: TestAttemptS32KillTheHost},
		"TestAttemptS36ForkBomb":                        {f: TestAttemptS36ForkBomb},
		"TestAttemptS39EndlessOutput":                   {f: TestAttemptS39EndlessOutput},
		"TestAttemptS48NoGhostFiles":                    {f: TestAttemptS48NoGhostFiles, gap: "protected-files"},
		"TestAttemptS48CrashLeftoversAreTakenAway":      {f: TestAttemptS48CrashLeftoversAreTakenAway, gap: "protected-files", may: true},
		"TestAttemptS49CarveOutsComeAfterWritableRoots": {f: TestAttemptS49CarveOutsComeAfterWritableRoots, gap: "protected-files"},
		"TestAttemptS58FolderThatContainsRepositories":  {f: TestAttemptS58FolderThatContainsRepositories},
		"TestAttemptKernelSettings":                     {f: TestAttemptKernelSettings},
		"TestAttemptLinksOnTheWayOfShadows":             {f: TestAttemptLinksOnTheWayOfShadows, gap: "protected-files"},
		"TestAttemptSwapAFolderWhileABoxIsMade":         {f: TestAttemptSwapAFolderWhileABoxIsMade},
		"TestAttemptFilteredSystemCalls":                {f: TestAttemptFilteredSystemCalls},
		"TestAttemptsMore": {f: TestAttemptsMore, may: true, some: map[string]string{
			"devices": "file-names", "fuse": "file-names", "shared memory, POSIX": "file-names",
			"exchange the configuration": "protected-files", "a nameless file in the hooks": "protected-files", "reopen the configuration for writing": "protected-files",
			"mode, times and attributes of the configuration": "protected-files", "the agent's own configuration": "protected-files",
		}},
		"TestAttemptDescriptorsThatTheHostForgot":            {f: TestAttemptDescriptorsThatTheHostForgot},
		"TestAttemptForeignSystemCallTables":                 {f: TestAttemptForeignSystemCallTables},
		"TestAttemptSignalsToTheBoxesOwnProcesses":           {f: TestAttemptSignalsToTheBoxesOwnProcesses},
		"TestAttemptSetgidAsRoot":                            {f: TestAttemptSetgidAsRoot},
		"TestAttemptRacesForTheProtectedNames":               {f: TestAttemptRacesForTheProtectedNames},
		"TestAttemptFillWhatLiesInMemory":                    {f: TestAttemptFillWhatLiesInMemory},
		"TestAttemptHideFromTheLimitOnDisk":                  {f: TestAttemptHideFromTheLimitOnDisk},
		"TestAttemptOutlastTheHost":                          {f: TestAttemptOutlastTheHost},
		"TestAttemptCrowdTheArguments":                       {f: TestAttemptCrowdTheArguments},
		"TestInvariant08_TimeoutEndsTheWholeTree":            {f: TestInvariant08_TimeoutEndsTheWholeTree},
		"TestInvariant08_WhatACommandLeavesBehindEndsWithIt": {f: TestInvariant08_WhatACommandLeavesBehindEndsWithIt},
		"TestBoxOfAPlanIsReadOnly":                           {f: TestBoxOfAPlanIsReadOnly},
		"TestBoxLimits":                                      {f: TestBoxLimits},
		"TestBoxStopsACommandThatFillsTheDisk":               {f: TestBoxStopsACommandThatFillsTheDisk},
		"TestBoxSaysWhyItDidNotStart":                        {f: TestBoxSaysWhyItDidNotStart},
		"TestGitWorksInTheBox":                               {f: TestGitWorksInTheBox},
		"TestToolchainsWorkInTheBox":                         {f: TestToolchainsWorkInTheBox},
		"TestToolchainsTakeGoModulesFromTheHostsCache":       {f: TestToolchainsTakeGoModulesFromTheHostsCache},
	}
}

// fullOnly are attempts that say nothing about the reduced box.
var fullOnly = map[string]string{
	"TestAttemptsAgainAsAnOrdinaryUser":                  "runs the others",
	"TestAttemptS47ForbiddenReads":                       "the reduced box refuses it, or grants around it: TestReducedForbiddenReads",
	"TestAttemptS48ShadowsSurviveAnEarlierBoxThatEnds":   "there are no shadows without mounts",
	"TestAttemptS51BubblewrapIsNeverTakenFromAWorkspace": "about the program of the full box",
	"TestAttemptS60SetuidVersions":                       "about the program of the full box",
	"TestBoxBoundsTheMemoryOfTheWholeCall":               "the reduced box has no control groups: memory is bounded for each process",
	"TestBoxBoundsTheProcessesOfRootToo":                 "the reduced box has no control groups: processes are bounded by rlimits",
	"TestBoxBoundsTheShareOfProcessors":                  "the reduced box has no control groups",
	"TestBoxLeavesNoDeadToAHostThatIsTheReaper":          "about the first process of the full box",
	"TestBoxRunsACommandInTheWorkspace":                  "/tmp is the task's own in the full box alone: TestReducedBoxRunsACommand",
}

func TestReducedAttempts(t *testing.T) {
	for name, a := range attempts {
		t.Run(shortName(name), a.f)
	}
}

// The table forgets nobody: a new attempt on the full box is made on the reduced one too.
func TestReducedAttemptsAreComplete(t *testing.T) {
	files, _ := filepath.Glob("*_linux_test.go")
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.Name.Name
			_, made := attempts[name]
			_, excused := fullOnly[name]
			if regexp.MustCompile(`^Test(Attempt|Box|Git|Toolchains)`).MatchString(name) && !made && !excused {
				t.Errorf("%s in %s is neither in attempts nor in fullOnly", name, file)
			}
		}
	}
}

// shortName keeps socket files in the tests' folders within the length that the kernel allows.
func shortName(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Attempt")
}

// attempt is the entry of the table that runs here.
func (r *room) attempt() attempt {
	name := strings.Split(r.t.Name(), "/")
	for full, a := range attempts {
		if len(name) < 2 || name[0] != "TestReducedAttempts" || shortName(full) != name[1] {
			continue
		}
		for part, gap := range a.some {
			if len(name) > 2 && strings.ReplaceAll(part, " ", "_") == name[2] {
				a.gap = gap
			}
		}
		return a
	}
	return attempt{}
}

// reducedTest: a test of the reduced box has it in its name.
func reducedTest(t testing.TB) bool { return strings.Contains(t.Name(), "Reduced") }

func TestInvariant08_AReducedBoxEndsWithItsHost(t *testing.T) { TestInvariant08_ABoxEndsWithItsHost(t) }

func TestInvariant08_StopEndsTheWholeTreeOfAReducedBox(t *testing.T) {
	TestInvariant08_StopEndsTheWholeTree(t)
}

func TestInvariant12_HostSecretsAreNeverVisibleInAReducedBox(t *testing.T) {
	TestInvariant12_HostSecretsAreNeverVisibleInABox(t)
}

func (r *room) reduced() bool { return r.box.Name() == "landlock" }

// gap is the one that explains a test of this name.
func (r *room) gap() string {
	if !r.reduced() {
		return ""
	}
	return r.attempt().gap
}

func newReducedBox(t testing.TB) Box {
	t.Helper()
	box, rep, err := Detect(context.Background(), Config{Backend: "landlock", AllowReduced: true})
	if err != nil {
		t.Skipf("no reduced box on this machine: %s: %s", rep.Reason, rep.Mend)
	}
	return box
}

// checkGap holds after an attempt: what is listed really happened, and what is protected is as it was.
func (r *room) checkGap() {
	if g := r.gap(); g != "" && r.shown == 0 && !r.attempt().may {
		r.t.Errorf("the attempt is listed under the gap %q and was refused: take it off", g)
	}
}

// sameProtected fails when something protected in the workspace is not what it was.
func (r *room) sameProtected(line string, before []kept) {
	r.t.Helper()
	after, err := remember(r.policy.Workspace)
	if err != nil {
		r.t.Errorf("%s: %v", line, err)
		return
	}
	if a, b := keptText(before), keptText(after); a != b {
		r.t.Errorf("%s: protected files were left changed\n%s", line, udiff.Unified("before", "after", a, b))
	}
}

func keptText(state []kept) string {
	var out strings.Builder
	for _, k := range state {
		if _, err := os.Lstat(filepath.Join(k.Root, k.Path)); k.Island && err != nil {
			continue // deleted, which is no way to make anything run
		}
		fmt.Fprintf(&out, "%s island %v %d\n", k.Path, k.Island, k.Ino)
		for _, l := range k.Entries {
			fmt.Fprintf(&out, "  %s %v %d %d %q\n", l.Path, l.Mode, l.UID, l.Links, l.Content)
		}
	}
	return out.String()
}
