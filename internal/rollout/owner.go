package rollout

// BelongsToOther reports whether a routing has a manager, and that is not the given identity. A routing without a
// manager can be claimed by any identity.
func BelongsToOther(manager, identity string) bool { return manager != "" && manager != identity }
