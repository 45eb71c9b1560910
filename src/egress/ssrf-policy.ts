/** What may be dialled: by the URL alone, then by the addresses that its host has. */
import { type Address, contains, isGlobal, parseAddress, type Range, range } from './address.ts'

/** A host and a port, before its addresses are known. */
export interface HostPort {
  /** Without brackets and final dot. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Where no name service needs to be asked. */
  readonly address: string | undefined
  /** Whether it may be dialled at a public address. */
  readonly publicly: boolean
  /** The operator's own: it may be dialled wherever it is. */
  readonly trusted?: boolean
}

export interface Target extends HostPort {
  readonly url: URL
}

export interface SsrfPolicy {
  /** The target, or what is wrong with it, in words that follow its name. */
  checkUrl(text: string): Target | string
  /**
   * Where a sandbox may go by its own rules: the host as the URL standard writes it, and whether a rule names that very
   * port. The place, or what is wrong with it, in words that follow its name.
   */
  checkHostPort(hostname: string, port: number, portNamed: boolean): HostPort | string
  /** Whether this place may be dialled at this address, which its host was found to have. */
  mayDial(hostPort: HostPort, address: string): boolean
}

interface Opening {
  readonly range: Range
  readonly port: number | '*' | undefined
}

const WEB_PORTS = new Set([80, 443])
/** What one parser strips and another takes for a separator. */
const AMBIGUOUS = /[\u0000-\u0020\u007f\\]/
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/
const NOT_PUBLIC = 'is not a public address'

/** `allowPrivate`: `10.1.0.0/16`, `127.0.0.1:9000`, `10.1.0.0/16:9000`, `[::1]:80`, `127.0.0.1:*`. Without a port: 80 and 443. */
export function createSsrfPolicy(allowPrivate: readonly string[]): SsrfPolicy {
  const openings = allowPrivate.map(parseOpening)

  const opensPort = ({ port }: Opening, asked: number) =>
    port === undefined ? WEB_PORTS.has(asked) : port === '*' || port === asked

  function mayDial({ publicly, trusted = false, port }: HostPort, text: string): boolean {
    const address: Address | undefined = parseAddress(text)
    if (!address) return false
    if (trusted) return true
    if (openings.some((opening) => opensPort(opening, port) && contains(opening.range, address))) return true
    return publicly && isGlobal(address)
  }

  function checkHostPort(hostname: string, port: number, portNamed: boolean): HostPort | string {
    const hostPort = { ...toHostPort(hostname, port), tls: false, publicly: portNamed || WEB_PORTS.has(port) }
    const { host, address } = hostPort
    if (address !== undefined) {
      // No address is public here: hosts are reached by name, or opened by the operator.
      if (mayDial({ ...hostPort, publicly: false }, address)) return hostPort
      return address === host ? 'is an address: hosts are reached by name' : NOT_PUBLIC
    }
    if (!HOST_NAME.test(host)) return 'is no host name of letters, digits, dots and hyphens'
    if (hostPort.publicly || openings.some((opening) => opensPort(opening, port))) return hostPort
    return `has its ports 80 and 443 open, not ${port}`
  }

  function checkUrl(text: string): Target | string {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
    if (scheme !== 'https' && scheme !== 'http') return 'must be an https:// address'
    if (AMBIGUOUS.test(text)) return 'must not contain spaces, control characters or backslashes'
    if (!URL.canParse(text)) return 'is not a valid address'
    const target = toTarget(new URL(text))
    const { url, host, port, tls, address } = target
    if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
    if (address !== undefined) {
      if (mayDial(target, address)) return target
      return WEB_PORTS.has(port) || !isPublic(address) ? faultOfPlace(tls, address) : WRONG_PORT
    }
    if (!HOST_NAME.test(host)) return 'must name a host of letters, digits, dots and hyphens'
    const opened = openings.some((opening) => opensPort(opening, port))
    if (!opened && !WEB_PORTS.has(port)) return WRONG_PORT
    if (!opened && !tls) return 'must be an https:// address'
    return target
  }

  return { checkUrl, checkHostPort, mayDial }
}

const WRONG_PORT = 'must not name another port than 443 or 80'

function isPublic(address: string): boolean {
  const parsed = parseAddress(address)
  return parsed !== undefined && isGlobal(parsed)
}

function faultOfPlace(tls: boolean, address: string): string {
  return !tls && isPublic(address) ? 'must be an https:// address' : NOT_PUBLIC
}

export function toTarget(url: URL): Target {
  const tls = url.protocol === 'https:'
  const hostPort = toHostPort(url.hostname, url.port === '' ? (tls ? 443 : 80) : Number(url.port))
  return { url, ...hostPort, tls, publicly: tls && WEB_PORTS.has(hostPort.port) }
}

/** `hostname` as the URL standard writes it. */
export function toHostPort(hostname: string, port: number): Pick<HostPort, 'host' | 'port' | 'address'> {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  // RFC 6761: these names are this machine, whatever a name service says.
  const local = host === 'localhost' || host.endsWith('.localhost')
  return { host, port, address: local ? '127.0.0.1' : parseAddress(host) && host }
}

function parseOpening(text: string): Opening {
  const found = /^(?:\[([^\]]+)\]|([^:]+|[^/]+\/\d+)):(\d+|\*)$/.exec(text)
  const [, bracketed, plain, port] = found ?? []
  return { range: range(bracketed ?? plain ?? text), port: port === undefined || port === '*' ? port : Number(port) }
}
