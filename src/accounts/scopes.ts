/** What a key may do. `all`: everything of its project. `invoke`: starts and handles interactions. `read`: reads. */
export const SCOPES = ['all', 'invoke', 'read'] as const
export type Scope = (typeof SCOPES)[number]
