/** Why a host outside was turned to on a run's behalf: a word of its audit. */
export type OutboundConnectionKind = 'file' | 'mcp' | 'search' | 'sandbox' | 'browser' | 'webhook' | 'blob'
