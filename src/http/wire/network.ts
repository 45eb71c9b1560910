/** `network` as it is written in a request: hosts by name, headers that the guard puts in, held against what is allowed. */
import { z } from 'zod'
import { beyondCeiling, type HeaderInjection, isAllowed, type Network, readHostRule } from '../../domain/network.ts'
import { wrongField } from '../request/fields.ts'

const MAX_RULE_CHARS = 300
const MAX_RULES = 100
const MAX_INJECTIONS = 20
const MAX_FORMAT_CHARS = 200
const FORMAT_RULE = 'must be ASCII text with {secret} in it'

/** What HTTP itself needs: a credential in one of these would change what is asked, not who asks. */
const RESERVED = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'transfer-encoding', 'upgrade', 'te'],
  ...['trailer', 'expect', 'keep-alive', 'accept-encoding', 'proxy-authorization', 'proxy-connection', 'range'],
])

export type SentNetwork = z.output<ReturnType<typeof networkSchema>>

/** `ceiling`: what is told of what may be asked for. */
export function networkSchema(ceiling: Network) {
  const injection = z
    .object({
      host: z
        .string()
        .max(MAX_RULE_CHARS)
        .meta({
          description:
            'One host, with a port or without; `allow` must have it. Requests go by https; by plain http too where a port other than 443 is named.',
          examples: ['api.github.com'],
        }),
      header: z
        .string()
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, { error: 'must be the name of an HTTP header' })
        .refine((name) => !RESERVED.has(name.toLowerCase()), { error: 'is a header that HTTP itself needs' })
        .nullish()
        .meta({ description: 'Default `Authorization`.' }),
      credentialId: z.string().min(1).max(128).meta({ description: 'A credential of the project.' }),
      format: z
        .string()
        .max(MAX_FORMAT_CHARS)
        .regex(/^[\x20-\x7e]*$/, { error: FORMAT_RULE })
        .refine((format) => format.includes('{secret}'), { error: FORMAT_RULE })
        .nullish()
        .meta({
          description:
            'The header’s value, `{secret}` standing for the secret’s text. Default: as the credential’s type says for `Authorization` (`Bearer …`, `Basic …`), the text alone for other headers.',
          examples: ['token {secret}'],
        }),
    })
    .meta({
      title: 'HeaderInjection',
      description:
        'A header with a credential that is put into each request to a host on its way, so that programs in the sandbox can use it and none can read it.',
    })
  return z
    .union(
      [
        z.enum(['disabled', 'public']),
        z.object({
          allow: z
            .array(z.string().min(1).max(MAX_RULE_CHARS))
            .max(MAX_RULES)
            .meta({
              description: 'Hosts: `host`, `*.host` (all below it), either with `:port`; else 80 and 443.',
              examples: [['pypi.org', '*.pythonhosted.org']],
            }),
          inject: z.array(injection).max(MAX_INJECTIONS).nullish(),
        }),
      ],
      { error: 'must be "disabled", "public", or {"allow": ["host", "*.host"]}' },
    )
    .meta({
      description: `What programs in the sandbox may reach: nothing (\`"disabled"\`, the default), every public host (\`"public"\`), or the hosts of a list. By HTTP and HTTPS through a proxy that the sandbox’s environment names; addresses that are not public are refused whatever their name. The browser goes by it too; where nobody sets it, the browser may see what is public. ${offered(ceiling)}`,
    })
}

function offered(ceiling: Network): string {
  if (ceiling === 'public') return 'This server allows all of it.'
  if (ceiling === 'disabled') return 'This server allows `"disabled"` alone.'
  return `This server allows at most: ${ceiling.allow.map((rule) => `\`${rule}\``).join(', ')}.`
}

/** Throws ErrandError `invalid_request`, `param` at or below `network`. */
export function decodeNetwork(sent: SentNetwork, ceiling: Network): Network {
  const network = typeof sent === 'string' ? sent : readRules(sent)
  const beyond = beyondCeiling(network, ceiling)
  if (beyond !== undefined) throw wrongField('network', beyond)
  return network
}

function readRules({ allow, inject }: Exclude<SentNetwork, string>): Network {
  const rules = { allow: allow.map((text, i) => readRule(text, `network.allow[${i}]`)) }
  if (!inject || inject.length === 0) return rules
  const seen = new Set<string>()
  const injections = inject.map((each, i): HeaderInjection => {
    const at = `network.inject[${i}]`
    const host = readRule(each.host, `${at}.host`)
    if (host.startsWith('*.')) throw wrongField(`${at}.host`, 'must be one host: a credential goes to no wildcard')
    if (!isAllowed(rules, host)) throw wrongField(`${at}.host`, 'must be among the hosts of `network.allow`')
    const header = each.header ?? 'Authorization'
    const place = `${host} ${header.toLowerCase()}`
    if (seen.has(place)) throw wrongField(at, `is the second for the header ${header} of ${host}`)
    seen.add(place)
    return { host, header, credentialId: each.credentialId, ...(each.format ? { format: each.format } : {}) }
  })
  return { ...rules, inject: injections }
}

function readRule(text: string, param: string): string {
  const read = readHostRule(text)
  if (typeof read === 'string') throw wrongField(param, read)
  return read.rule
}
