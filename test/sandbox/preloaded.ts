/** Tests of the bubblewrap driver once more, in sandboxes that have packages loaded. */
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    preloaded: true | undefined
  }
}

export default function setup(project: TestProject): void {
  project.provide('preloaded', true)
}
