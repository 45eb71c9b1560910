/** Scopes of keys. `all`: everything in the project. `invoke`: start and manage interactions. `read`: only read. */
export const SCOPES = ['all', 'invoke', 'read'] as const
export type Scope = (typeof SCOPES)[number]
