import type { Provider } from './provider.ts'

/** The built-in demo model. It has no server and needs no key. */
export const demo: Provider<'demo'> = { name: 'demo', requires: [], keyEnvs: [] }
