import type { CatalogueEntry } from '../models/port.ts'

/** The catalogue's entry for the demo model under any name; the model is loaded when somebody asks it. */
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
