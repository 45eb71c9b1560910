/** Sandboxes of a node with the role `api`: none. The workers have them. */
import { SandboxError, type Sandboxes } from './port.ts'

/** `driver`: the configured driver, for the facts that the api shows. */
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
