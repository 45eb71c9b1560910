/** Host uids for sandboxes: as root, each gets one of its own that owns nothing. */
import { readFileSync } from 'node:fs'

/** Above what distributions and container runtimes assign, below 2^31. Each host uses UIDS_PER_HOST of them. */
const FIRST_UID = 1_900_000_000
/** For a thousand sandboxes in use, some in the pool, and the template. */
export const UIDS_PER_HOST = 1024

/**
 * The first uid of this host. In a container that maps few uids, they are taken from the end of the mapped range. Undefined
 * if hardly any are mapped, as in a user namespace of an ordinary user.
 */
export function uidRange(hash: string): number | undefined {
  const maps = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n')
  const end = Math.max(
    ...maps.map((line) => line.trim().split(/\s+/).map(Number)).map(([from = 0, , size = 0]) => from + size),
  )
  const wanted = FIRST_UID + (Number.parseInt(hash.slice(0, 6), 16) % 200_000) * UIDS_PER_HOST
  if (wanted + UIDS_PER_HOST <= end) return wanted
  return end > 10 * UIDS_PER_HOST ? end - 2 * UIDS_PER_HOST - 2 : undefined
}

/** Takes the lowest free slot. Throws if all are taken. */
export function freeSlot(slots: Set<number>): number {
  let slot = 1 // the first uid is the template's
  while (slots.has(slot)) slot++
  if (slot >= UIDS_PER_HOST)
    throw new Error(`More than ${UIDS_PER_HOST - 1} sandboxes at once on one host are not supported.`)
  slots.add(slot)
  return slot
}

/** The command that becomes that uid, before the command that it runs. */
export function dropTo(uid: number): string[] {
  return ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--no-new-privs', '--']
}
