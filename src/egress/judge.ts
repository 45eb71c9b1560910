/** What may be dialled: by the URL alone, then by the addresses that its host has. */
import { type Address, contains, isGlobal, parseAddress, type Range, range } from './address.ts'

export interface Target {
  readonly url: URL
  /** Without brackets and final dot. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Where no name service needs to be asked. */
  readonly address: string | undefined
}

export interface Judge {
  /** The target, or what is wrong with it, in words that follow its name. */
  judgeUrl(text: string): Target | string
  /** Whether this target may be dialled at this address, which its host was found to have. */
  mayDial(target: Target, address: string): boolean
  /** For programs in a sandbox, whose hosts and ports are a rule's to allow: the host of an authority, or what is wrong with it. */
  judgeHost(host: string, port: number, tls: boolean): Target | string
  /** Whether a sandbox's connection may be dialled at this address. */
  mayTunnel(target: Target, address: string): boolean
  /** Whether the operator opened this very address and port. */
  isOpened(target: Target): boolean
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
export function createJudge(allowPrivate: readonly string[]): Judge {
  const openings = allowPrivate.map(parseOpening)

  const opensPort = ({ port }: Opening, asked: number) =>
    port === undefined ? WEB_PORTS.has(asked) : port === '*' || port === asked

  function mayDial({ tls, port }: Target, text: string): boolean {
    const address: Address | undefined = parseAddress(text)
    if (!address) return false
    return isOpen(port, text) || (tls && WEB_PORTS.has(port) && isGlobal(address))
  }

  function judgeUrl(text: string): Target | string {
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

  function isOpen(port: number, text: string): boolean {
    const address = parseAddress(text)
    return (
      address !== undefined && openings.some((opening) => opensPort(opening, port) && contains(opening.range, address))
    )
  }

  return {
    judgeUrl,
    mayDial,
    judgeHost(host, port, tls) {
      // Before any parser makes something else of it: no brackets, user names, control characters.
      if (!/^[a-z0-9.-]{1,254}$/i.test(host)) return 'must be a host name of letters, digits, dots and hyphens'
      const address = `${tls ? 'https' : 'http'}://${host}:${port}`
      if (!URL.canParse(address)) return 'is not a valid host'
      const target = toTarget(new URL(address))
      if (target.address !== undefined) {
        return isOpen(port, target.address) ? target : 'must be a host name, not an address'
      }
      return HOST_NAME.test(target.host) ? target : 'is not a valid host name'
    },
    mayTunnel({ port }, text) {
      const address = parseAddress(text)
      return address !== undefined && (isGlobal(address) || isOpen(port, text))
    },
    isOpened: ({ address, port }) => address !== undefined && isOpen(port, address),
  }
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
  const bare = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const tls = url.protocol === 'https:'
  // RFC 6761: these names are this machine, whatever a name service says.
  const local = bare === 'localhost' || bare.endsWith('.localhost')
  return {
    url,
    host: bare,
    port: url.port === '' ? (tls ? 443 : 80) : Number(url.port),
    tls,
    address: local ? '127.0.0.1' : parseAddress(bare) && bare,
  }
}

function parseOpening(text: string): Opening {
  const found = /^(?:\[([^\]]+)\]|([^:]+|[^/]+\/\d+)):(\d+|\*)$/.exec(text)
  const [, bracketed, plain, port] = found ?? []
  return { range: range(bracketed ?? plain ?? text), port: port === undefined || port === '*' ? port : Number(port) }
}
