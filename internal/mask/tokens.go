package mask

import "regexp"

// shortestToken is how long a text is at least that is a token of a known format.
const shortestToken = 20

// token finds tokens that are known by their formats, and private keys.
var token = regexp.MustCompile(`(^|[^A-Za-z0-9_-])(` +
	`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}` + // GitHub
	`|gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|oas|imt|ffct)-[\w.-]{16,}` + // GitLab
	`|A(?:KI|SI)A[A-Z0-9]{16}` + // AWS
	`|AIza[\w-]{35}|ya29\.[\w.-]{16,}` + // Google
	`|xox[abeoprs]-[\w.-]{10,}|xapp-[\w-]{10,}|hooks\.slack\.com/services/[\w/]{20,}` + // Slack
	// Google's OAuth clients, age, Azure Storage
	`|GOCSPX-[\w-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{40,}|AccountKey=[A-Za-z0-9+/=]{40,}` +
	`|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}` + // Stripe
	`|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}` + // registries
	`|hv[bsr]\.[\w-]{16,}` + // Vault
	`|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}|hf_[A-Za-z0-9]{30,}` + // models
	`|SG\.[\w-]{16,}\.[\w-]{16,}|glsa_\w{20,}|do[opr]_v1_\w{20,}` + // SendGrid, Grafana, DigitalOcean
	`|eyJ[\w-]{8,}\.eyJ[\w-]{4,}\.[\w-]*` + // JSON Web Tokens
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)` +
	`)`)
