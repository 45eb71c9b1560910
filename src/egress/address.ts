/** IP addresses: parsing, and whether they are public (RFC 6890 and the IANA registries that follow it). */
import { isIPv4, isIPv6 } from 'node:net'

/** An IP address. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) counts as the IPv4 address, as a socket treats it. */
export interface Address {
  readonly family: 4 | 6
  readonly value: bigint
}

export interface Range {
  readonly first: Address
  /** Number of leading bits that all its addresses share. */
  readonly prefix: number
}

/** The first 96 bits of an IPv4-mapped IPv6 address. */
const MAPPED = 0xffffn

/** IPv4 ranges that are not public, or that may lead to addresses that are not. */
const SPECIAL_V4 = ranges(
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local: the clouds' metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
)

/** Public IPv6. All other ranges (::1, fc00::/7, fe80::/10, ff00::/8, 5f00::/16, …) are outside and need no entry. */
const GLOBAL_V6 = range('2000::/3')
const SPECIAL_V6 = ranges(
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: an IPv4 address inside
  '3fff::/20', // documentation
)
/** NAT64: the gateway forwards to the IPv4 address in the last 32 bits. */
const NAT64 = range('64:ff9b::/96')

/** Parses an address. Undefined if the text is not an address, or has a zone. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { family: 4, value: toNumber(text.split('.').map(Number), 8n) }
  if (!isIPv6(text) || text.includes('%')) return undefined
  const value = parseV6(text)
  return value >> 32n === MAPPED ? { family: 4, value: value & 0xffffffffn } : { family: 6, value }
}

function parseV6(text: string): bigint {
  // The URL parser normalizes every spelling: hexadecimal groups with at most one `::`.
  const [head = '', tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = Array<number>(8 - before.length - after.length).fill(0)
  return toNumber([...before, ...zeros, ...after], 16n)
}

function toNumber(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) | BigInt(part), 0n)
}

/** Parses `10.0.0.0/8` or a single address. Throws if it is neither. */
export function range(text: string): Range {
  const [start = '', prefix] = text.split('/')
  const first = parseAddress(start)
  if (!first) throw new Error(`This is not an address range: ${text}`)
  return { first, prefix: prefix === undefined ? width(first) : Number(prefix) }
}

function ranges(...texts: readonly string[]): readonly Range[] {
  return texts.map(range)
}

export function contains({ first, prefix }: Range, address: Address): boolean {
  if (first.family !== address.family) return false
  const rest = BigInt(width(address) - prefix)
  return first.value >> rest === address.value >> rest
}

function width({ family }: Address): number {
  return family === 4 ? 32 : 128
}

/** The network of one visitor: an IPv4 address, or the first 64 bits of an IPv6 address. Other texts are returned unchanged. */
export function networkOf(text: string): string {
  const address = parseAddress(text)
  return address?.family === 6 ? `${(address.value >> 64n).toString(16)}::/64` : text
}

/** True if the address is on the public internet. */
export function isGlobal(address: Address): boolean {
  const within = (each: Range) => contains(each, address)
  if (address.family === 4) return !SPECIAL_V4.some(within)
  if (within(NAT64)) return isGlobal({ family: 4, value: address.value & 0xffffffffn })
  return within(GLOBAL_V6) && !SPECIAL_V6.some(within)
}
