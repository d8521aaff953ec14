package app

// workMethods steer what a thread works at: reviews and goals.
func workMethods() []Method {
	return []Method{
		req("thread/goal/get", ThreadParams{}, GoalGetResult{}),
		req("thread/goal/set", GoalSetParams{}, GoalSetResult{}),
		req("thread/goal/clear", ThreadParams{}, GoalClearResult{}),
		req("thread/metadata/update", ThreadMetadataParams{}, ThreadResult{}),
		req("thread/revert", ThreadRevertParams{}, ThreadRevertResult{}),
		req("thread/section/move", ThreadSectionMoveParams{}, Empty{}),
		req("threadSection/list", ListParams{}, ThreadSectionListResult{}),
		req("review/start", ReviewStartParams{}, ReviewStartResult{}),
	}
}
