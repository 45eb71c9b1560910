/**
 * The network access of a run's programs, and the operator's ceiling for it.
 *
 * A rule of an allowlist is a host (`api.example.com`) or all its subdomains (`*.example.com`, without `example.com`),
 * optionally with a port (`host:8443`; the default is 80 and 443). Rules allow names. The egress guard checks the resolved
 * address of each connection.
 */

export type Network = 'disabled' | 'public' | NetworkRules

export interface NetworkRules {
  readonly allow: readonly string[]
  /** Headers that the guard adds to requests to named hosts. Code in the sandbox can use the secrets but never see them. */
  readonly inject?: readonly HeaderInjection[]
}

export interface HeaderInjection {
  /** A host, without port or wildcard; it must be allowed. */
  readonly host: string
  readonly header: string
  /** A credential of the project. */
  readonly credentialId: string
  /** Template for the header's value. Default: `Bearer {secret}` for Authorization, `{secret}` for other headers. */
  readonly format?: string
}

interface HostRule {
  /** Lower case, without the final dot. */
  readonly host: string
  /** True if the rule matches the subdomains of `host` instead of `host` itself. */
  readonly below: boolean
  readonly port: number | undefined
}

/** The most specific rule that matches a host and port: one with the port, one with the host alone, or none. */
export type Verdict = 'port' | 'host' | 'none'

const LABEL = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const HOST = new RegExp(`^(?=.{1,253}$)${LABEL}(\\.${LABEL})*$`)
const WEB_PORTS: readonly number[] = [80, 443]

/** The URL standard parses a host that ends in a number as an IP address. */
const NUMERIC = /(^|\.)(\d+|0x[0-9a-f]*)$/

/** The normalized rule, or an error that completes a sentence starting with the field's name. */
export function readHostRule(text: string): { readonly rule: string } | string {
  const rule = parseHostRule(text)
  if (typeof rule === 'string') return rule
  return { rule: `${rule.below ? '*.' : ''}${rule.host}${rule.port === undefined ? '' : `:${rule.port}`}` }
}

/** The parsed rule, or an error that completes a sentence starting with the field's name. */
function parseHostRule(text: string): HostRule | string {
  const [, star = '', name = '', digits] = /^(\*\.)?([^:]*?)\.?(?::(\d{1,5}))?$/.exec(text.toLowerCase()) ?? []
  const host = name.replace(/\.$/, '')
  if (!HOST.test(host)) {
    return 'must be a host like "api.example.com", "*.example.com" or "api.example.com:8443" (letters, digits, dots, hyphens; write other names in punycode)'
  }
  if (NUMERIC.test(host)) return 'must be a name: addresses can’t be listed'
  if (star && !host.includes('.')) return 'must not open a whole top-level domain'
  if (digits !== undefined && (Number(digits) < 1 || Number(digits) > 65_535)) return 'must name a port from 1 to 65535'
  return { host, below: star !== '', port: digits === undefined ? undefined : Number(digits) }
}

/** The parsed rules. They were validated when the request was accepted. */
function rulesOf({ allow }: NetworkRules): HostRule[] {
  return allow.map(parseHostRule).filter((rule) => typeof rule !== 'string')
}

/** The verdict for a host and port. `host` is in lower case, without a final dot. */
export function verdictOf(network: Network, host: string, port: number): Verdict {
  if (network === 'disabled') return 'none'
  if (network === 'public') return 'host'
  const found = rulesOf(network).filter((rule) => matchesHost(rule, host))
  if (found.some((rule) => rule.port === port)) return 'port'
  return found.some((rule) => rule.port === undefined) ? 'host' : 'none'
}

/** The header injections for requests to this host and port. */
export function injectionsFor(network: Network, host: string, port: number): readonly HeaderInjection[] {
  if (typeof network === 'string') return []
  return (network.inject ?? []).filter((injection) => {
    const rule = parseHostRule(injection.host)
    return typeof rule !== 'string' && matchesHost(rule, host) && matchesPort(rule, port)
  })
}

/** True if the credential may be sent unencrypted: only to an explicit port other than 443. */
export function goesInClear({ host }: HeaderInjection): boolean {
  const rule = parseHostRule(host)
  return typeof rule !== 'string' && rule.port !== undefined && rule.port !== 443
}

/** True if the rules of `network` cover this rule. */
export function isAllowed(network: NetworkRules, text: string): boolean {
  const rule = parseHostRule(text)
  return typeof rule !== 'string' && rulesOf(network).some((wider) => covers(wider, rule))
}

/** The network reduced to the ceiling. */
export function withinCeiling(asked: Network, ceiling: Network): Network {
  if (beyondCeiling(asked, ceiling) === undefined) return asked
  if (ceiling === 'disabled' || ceiling === 'public' || asked === 'disabled') return 'disabled'
  if (asked === 'public') return ceiling
  return { ...asked, allow: asked.allow.filter((rule) => isAllowed(ceiling, rule)) }
}

/** The network in words, for people and models. */
export function describeNetwork(network: Network): string {
  if (network === 'disabled') return 'There is no network.'
  const how = 'by HTTP and HTTPS through the proxy that HTTP_PROXY and HTTPS_PROXY name'
  if (network === 'public')
    return `The public internet can be reached ${how}, at ports 80 and 443; there is no other network.`
  const hosts = network.allow.join(', ') || 'none'
  const signed = (network.inject ?? []).map(({ host }) => host)
  const inject =
    signed.length === 0 ? '' : ` Requests to ${signed.join(', ')} are signed in on the way: no key is needed.`
  return `These hosts can be reached ${how}: ${hosts}. There is no other network.${inject}`
}

function matchesHost({ host, below }: HostRule, asked: string): boolean {
  return below ? asked.endsWith(`.${host}`) : asked === host
}

function matchesPort({ port }: HostRule, asked: number): boolean {
  return port === undefined ? WEB_PORTS.includes(asked) : port === asked
}

/** Why `asked` exceeds the ceiling, to complete a sentence starting with `network`. Undefined if it does not. */
export function beyondCeiling(asked: Network, ceiling: Network): string | undefined {
  if (asked === 'disabled' || ceiling === 'public') return undefined
  if (ceiling === 'disabled') return 'must be "disabled": the operator of this server allows no network to sandboxes'
  const allowed = `the operator of this server allows ${ceiling.allow.join(', ') || 'no host'}`
  if (asked === 'public') return `must be "disabled" or an allow-list: ${allowed}`
  const outside = asked.allow.find((text) => {
    const rule = parseHostRule(text)
    return typeof rule === 'string' || !rulesOf(ceiling).some((wider) => covers(wider, rule))
  })
  return outside === undefined ? undefined : `asks for ${outside}, but ${allowed}`
}

function covers(wider: HostRule, rule: HostRule): boolean {
  const host = rule.below
    ? wider.below && (rule.host === wider.host || rule.host.endsWith(`.${wider.host}`))
    : matchesHost(wider, rule.host)
  if (!host) return false
  return rule.port === undefined ? wider.port === undefined : matchesPort(wider, rule.port)
}
