/** The version, from package.json, where the release sets it. */
import manifest from '../../package.json' with { type: 'json' }

export const VERSION: string = manifest.version
