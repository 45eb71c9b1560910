/** The bubblewrap driver with its default settings, for `openSandboxes`. */
import { defaultChoice } from '../src/sandbox/drivers.ts'

export const BUBBLEWRAP = defaultChoice('bubblewrap')
