/** Tests of the bubblewrap driver once more, with each sandbox started whole: what the fork-server stands in for. */
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    whole: true | undefined
  }
}

export default function setup(project: TestProject): void {
  project.provide('whole', true)
}
