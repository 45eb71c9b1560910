/** Global setup: runs tests of the bubblewrap driver in sandboxes with packages loaded. */
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    preloaded: true | undefined
  }
}

export default function setup(project: TestProject): void {
  project.provide('preloaded', true)
}
