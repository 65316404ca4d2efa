package permission

import "strings"

// kind of a variable: what setting it may do.
type kind int

const (
	ordinary  kind = iota
	steering       // decides which code later commands run
	naming         // its value is a program, or a line for a shell
	renaming       // its value makes other names run other programs
	evaluated      // bash itself runs its value
)

var steeringNames = set(`PATH ENV IFS SHELL BASHOPTS SHELLOPTS BASH_LOADABLES_PATH GLOBIGNORE
	GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_ALLOW_PROTOCOL
	NODE_OPTIONS NODE_PATH DENO_DIR BUN_OPTIONS PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONBREAKPOINT PYTHONUSERBASE PYTHONINSPECT
	PERL5LIB PERL5OPT PERLLIB PERL5DB PERL5SHELL RUBYOPT RUBYLIB RUBYSHELL GEM_PATH GEM_HOME BUNDLE_GEMFILE BUNDLE_PATH
	JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_OPTS JAVA_HOME MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS CLASSPATH
	GOFLAGS GOROOT GOTOOLDIR GOTOOLCHAIN GOENV RUSTFLAGS
	MAKEFLAGS MAKEFILES GNUMAKEFLAGS MAKESHELL TAR_OPTIONS HGMERGE
	PHPRC PHP_INI_SCAN_DIR LUA_PATH LUA_CPATH LUA_INIT TCLLIBPATH R_PROFILE R_HOME
	DOTNET_STARTUP_HOOKS CORECLR_PROFILER CORECLR_PROFILER_PATH GCC_EXEC_PREFIX COMPILER_PATH GCONV_PATH LOCPATH
	DEBUGINFOD_URLS EMACSLOADPATH VIMINIT EXINIT MYVIMRC AWKPATH AWKLIBPATH
	TERMINFO KUBECONFIG DOCKER_HOST`)

var steeringPrefixes = []string{"LD_", "DYLD_", "GIT_CONFIG", "BASH_FUNC_", "CARGO_", "LUA_INIT_", "LUA_PATH_", "LUA_CPATH_", "NPM_CONFIG_", "npm_config_"}

// renamingNames hold options, code or names by which a program that the line names becomes another.
var renamingNames = set("BASH_ALIASES BASH_CMDS POSIXLY_CORRECT TAR_OPTIONS PERL5OPT PERL5DB LUA_INIT VIMINIT EXINIT MAKEFLAGS GNUMAKEFLAGS")

// namingNames hold a program, alone or with arguments.
var namingNames = set(`PAGER MANPAGER EDITOR VISUAL FCEDIT BROWSER LESSOPEN LESSCLOSE LESSEDIT GIT_SSH GIT_SSH_COMMAND GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR
	GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_PROXY_COMMAND RSYNC_RSH CVS_RSH SVN_SSH SVN_EDITOR HGEDITOR SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR SYSTEMD_EDITOR SYSTEMD_PAGER KUBE_EDITOR
	CC CXX CPP LD AR AS FC RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC RSYNC_CONNECT_PROG CMAKE_C_COMPILER_LAUNCHER`)

var evaluatedNames = set("BASH_ENV PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4")

// cargoProgram tells that a variable of cargo's settings names a program.
func cargoProgram(name string) bool {
	return strings.HasPrefix(name, "CARGO_") && (strings.Contains(name, "RUSTC") || strings.Contains(name, "RUSTDOC") || strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER") ||
		strings.HasSuffix(name, "_WRAPPER") || strings.Contains(name, "CREDENTIAL"))
}

func variableKind(name string) kind {
	if i := strings.IndexByte(name, '['); i > 0 {
		name = name[:i]
	}
	if evaluatedNames[name] {
		return evaluated
	}
	switch {
	case renamingNames[name], strings.HasPrefix(name, "GIT_CONFIG_"), name == "GIT_CONFIG_PARAMETERS", strings.HasPrefix(name, "BASH_FUNC_"):
		return renaming
	case namingNames[name]:
		return naming
	}
	if steeringNames[name] {
		return steering
	}
	for _, p := range steeringPrefixes {
		if strings.HasPrefix(name, p) {
			return steering
		}
	}
	return ordinary
}

func set(s string) map[string]bool {
	out := map[string]bool{}
	for _, f := range strings.Fields(s) {
		out[f] = true
	}
	return out
}

// splitAssign takes NAME=value apart; ok only for a valid name.
func splitAssign(s string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	name = strings.TrimSuffix(name, "+")
	return name, value, ok && validName(name)
}

func validName(s string) bool {
	for i, r := range s {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return s != ""
}
