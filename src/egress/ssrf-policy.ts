/** The SSRF policy: which URLs and addresses may be dialed. It checks the URL first, then each address of its host. */
import { type Address, contains, isGlobal, parseAddress, type Range, range } from './address.ts'

/** A host and a port, before its addresses are known. */
export interface HostPort {
  /** Without brackets and final dot. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** The address, if the host is one or is `localhost`, so that DNS is not needed. */
  readonly address: string | undefined
  /** True if it may be dialed at a public address. */
  readonly publicly: boolean
  /** Configured by the operator: may be dialed at any address. */
  readonly trusted?: boolean
}

export interface Target extends HostPort {
  readonly url: URL
}

export interface SsrfPolicy {
  /** The target, or the reason for a refusal as words that follow its name. */
  checkUrl(text: string): Target | string
  /**
   * Checks a host and port that the run's own network rules allow. `hostname` is as the URL standard writes it; `portNamed`
   * is true if a rule names this port. Returns the host and port, or the reason for a refusal as words that follow its name.
   */
  checkHostPort(hostname: string, port: number, portNamed: boolean): HostPort | string
  /** True if the host and port may be dialed at this address of the host. */
  mayDial(hostPort: HostPort, address: string): boolean
}

/** A range that the operator allows, and its port: undefined for 80 and 443, `*` for all. */
interface AllowedRange {
  readonly range: Range
  readonly port: number | '*' | undefined
}

const WEB_PORTS = new Set([80, 443])
/** Characters that one URL parser strips and another takes for a separator. */
const AMBIGUOUS = /[\u0000-\u0020\u007f\\]/
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/
const NOT_PUBLIC = 'is not a public address'

/** `allowPrivate`: entries such as `10.1.0.0/16`, `127.0.0.1:9000`, `10.1.0.0/16:9000`, `[::1]:80`, `127.0.0.1:*`. Without a port: 80 and 443. */
export function createSsrfPolicy(allowPrivate: readonly string[]): SsrfPolicy {
  const allowed = allowPrivate.map(parseAllowedRange)

  const allowsPort = ({ port }: AllowedRange, asked: number) =>
    port === undefined ? WEB_PORTS.has(asked) : port === '*' || port === asked

  function mayDial({ publicly, trusted = false, port }: HostPort, text: string): boolean {
    const address: Address | undefined = parseAddress(text)
    if (!address) return false
    if (trusted) return true
    if (allowed.some((each) => allowsPort(each, port) && contains(each.range, address))) return true
    return publicly && isGlobal(address)
  }

  function checkHostPort(hostname: string, port: number, portNamed: boolean): HostPort | string {
    const hostPort = { ...toHostPort(hostname, port), tls: false, publicly: portNamed || WEB_PORTS.has(port) }
    const { host, address } = hostPort
    if (address !== undefined) {
      // An address is refused even if public, unless the operator allows it: sandboxes reach hosts by name.
      if (mayDial({ ...hostPort, publicly: false }, address)) return hostPort
      return address === host ? 'is an address: hosts are reached by name' : NOT_PUBLIC
    }
    if (!HOST_NAME.test(host)) return 'is no host name of letters, digits, dots and hyphens'
    if (hostPort.publicly || allowed.some((each) => allowsPort(each, port))) return hostPort
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
    const opened = allowed.some((each) => allowsPort(each, port))
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

/** `hostname` must be as the URL standard writes it. */
export function toHostPort(hostname: string, port: number): Pick<HostPort, 'host' | 'port' | 'address'> {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  // RFC 6761: these names are always this machine, whatever DNS returns.
  const local = host === 'localhost' || host.endsWith('.localhost')
  return { host, port, address: local ? '127.0.0.1' : parseAddress(host) && host }
}

function parseAllowedRange(text: string): AllowedRange {
  const found = /^(?:\[([^\]]+)\]|([^:]+|[^/]+\/\d+)):(\d+|\*)$/.exec(text)
  const [, bracketed, plain, port] = found ?? []
  return { range: range(bracketed ?? plain ?? text), port: port === undefined || port === '*' ? port : Number(port) }
}
