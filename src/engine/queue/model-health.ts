/** Recent health of the models, in this process and on each node that calls them. */

import { placeOf } from '../../domain/ids.ts'
import type { Catalogue, ModelHealth } from '../../models/port.ts'
import type { Nodes } from './nodes.ts'

/** Health by model name. */
export type Health = Readonly<Record<string, ModelHealth>>

const NAME_CHARS = 6

export function healthOf(catalogue: Catalogue): Health {
  const found = catalogue.names().map((name) => [name, catalogue.get(name)?.health?.()] as const)
  return Object.fromEntries(found.filter((entry): entry is [string, ModelHealth] => entry[1] !== undefined))
}

/** `living` is undefined if there is only this process. A single node that calls models needs no name. */
export function healthByNode(
  living: ReturnType<Nodes['living']> | undefined,
  catalogue: Catalogue,
): readonly { readonly name: string | null; readonly health: Health }[] {
  const calling = living?.filter(({ role }) => role !== 'api') ?? []
  if (calling.length === 0) return [{ name: null, health: healthOf(catalogue) }]
  return calling.map(({ id, role, models }) => ({
    name: calling.length === 1 ? null : `${role} ${placeOf(id).slice(0, NAME_CHARS)}`,
    health: JSON.parse(models) as Health,
  }))
}
