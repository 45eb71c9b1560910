/** Global setup: runs tests of the bubblewrap driver with each sandbox started whole, without the fork server. */
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    whole: true | undefined
  }
}

export default function setup(project: TestProject): void {
  project.provide('whole', true)
}
