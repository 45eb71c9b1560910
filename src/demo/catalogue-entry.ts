import type { CatalogueEntry } from '../models/port.ts'

/** Creates the catalogue's entry for the demo model under a name. `open` loads the model. */
export function demoEntry(name: string): CatalogueEntry {
  return {
    name,
    provider: 'demo',
    model: 'demo',
    source: 'built-in demo model',
    vision: false,
    documents: false,
    demo: true,
    open: async () => (await import('./demo.ts')).createDemoModel(),
  }
}
