package app

// workspaceMethods are those that reach into a thread's files and run programs next
// to its agent.
func workspaceMethods() []Method {
	return []Method{
		req("command/exec", CommandExecParams{}, CommandExecResult{}),
		req("command/exec/write", CommandExecWriteParams{}, Empty{}),
		req("command/exec/resize", CommandExecResizeParams{}, Empty{}),
		req("command/exec/terminate", CommandExecTerminateParams{}, Empty{}),
		note("command/exec/outputDelta", CommandExecOutput{}),

		req("fs/readFile", FsPathParams{}, FsReadFileResult{}),
		req("fs/writeFile", FsWriteFileParams{}, Empty{}),
		req("fs/createDirectory", FsCreateDirectoryParams{}, Empty{}),
		req("fs/getMetadata", FsPathParams{}, FsMetadata{}),
		req("fs/readDirectory", FsPathParams{}, FsReadDirectoryResult{}),
		req("fs/remove", FsRemoveParams{}, Empty{}),
		req("fs/copy", FsCopyParams{}, Empty{}),
		req("fs/watch", FsWatchParams{}, FsWatchResult{}),
		req("fs/unwatch", FsUnwatchParams{}, Empty{}),
		note("fs/changed", FsChanged{}),

		req("fuzzyFileSearch", FileSearchParams{}, FileSearchResult{}),
		exp(req("fuzzyFileSearch/sessionStart", FileSearchStartParams{}, Empty{})),
		exp(req("fuzzyFileSearch/sessionUpdate", FileSearchUpdateParams{}, Empty{})),
		exp(req("fuzzyFileSearch/sessionStop", FileSearchSession{}, Empty{})),
		note("fuzzyFileSearch/sessionUpdated", FileSearchUpdated{}),
		note("fuzzyFileSearch/sessionCompleted", FileSearchSession{}),

		exp(req("thread/backgroundTerminals/list", BackgroundTerminalsParams{}, BackgroundTerminalsResult{})),
		exp(req("thread/backgroundTerminals/clean", ThreadParams{}, Empty{})),
		exp(req("thread/backgroundTerminals/terminate", BackgroundTerminalParams{}, BackgroundTerminalEnded{})),
	}
}
