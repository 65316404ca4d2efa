package permission

import "encoding/json"

// bashCall is a call of bash with that line, in a workspace.
func bashCall(line string) Call {
	args, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		panic(err)
	}
	return Call{Tool: "bash", Args: args, Root: caseRoot}
}
