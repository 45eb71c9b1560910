/** The peers: servers of agents that others wrote, each set up in bench/peers, installed outside of Errand's dependencies. */
import type { Provider, Side } from './sides.ts'

export const PEERS = {} as const
export type PeerName = keyof typeof PEERS

export function openPeer(name: PeerName, _provider: Provider): Promise<Side> {
  throw new Error(`There is no peer ${name}`)
}
