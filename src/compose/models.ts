/** The catalogue of models. */

import { demoEntry } from '../demo/catalogue-entry.ts'
import { openCatalogue } from '../models/catalogue.ts'
import type { Catalogue } from '../models/port.ts'
import type { ComposeContext } from './context.ts'

export async function openModels({ config, works, env, log, emit, closers }: ComposeContext): Promise<Catalogue> {
  const ownSearch = config.search.provider === 'model'
  const catalogue = await openCatalogue({
    ...config,
    ownSearch,
    calls: works !== 'none',
    env,
    log,
    emit,
    demoEntry,
  })
  return closers.add(catalogue)
}
