/** For a process that works on nothing itself: the sandboxes are on other nodes. */
import { SandboxError, type Sandboxes } from './port.ts'

/** `driver`: what the workers are told to make sandboxes with. */
export function createNoSandboxes(driver: string): Sandboxes {
  return {
    async open() {
      throw new SandboxError('unavailable', 'This node has no sandboxes: its role is api.')
    },
    async destroy() {},
    living: async () => [],
    counts: async () => ({ open: 0, warm: 0 }),
    facts: async () => ({ driver, enforced: [], notEnforced: [], probes: [], inside: '', browser: undefined }),
    async close() {},
  }
}
