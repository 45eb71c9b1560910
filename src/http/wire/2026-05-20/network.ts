/** `network`, what a sandbox may connect to: schemas, and decoding within what the operator allows. */
import { z } from 'zod'
import { beyondCeiling, type HeaderInjection, isAllowed, type Network, readHostRule } from '../../../domain/network.ts'
import { wrongField } from '../../request/fields.ts'

const MAX_RULE_CHARS = 300
const MAX_RULES = 100
const MAX_INJECTIONS = 20
const MAX_FORMAT_CHARS = 200
const FORMAT_RULE = 'must be ASCII text with {secret} in it'

/** Headers that HTTP itself needs. A credential in one of them would change the request instead of authenticating it. */
const RESERVED = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'transfer-encoding', 'upgrade', 'te'],
  ...['trailer', 'expect', 'keep-alive', 'accept-encoding', 'proxy-authorization', 'proxy-connection', 'range'],
])

export const networkAnswer = z.union([
  z.enum(['disabled', 'public']),
  z.object({
    allow: z.array(z.string()),
    inject: z
      .array(
        z.object({
          host: z.string(),
          header: z.string(),
          credentialId: z.string(),
          format: z.string().optional(),
        }),
      )
      .optional(),
  }),
])

export type SentNetwork = z.output<ReturnType<typeof networkRequest>>

/** `ceiling`: the operator's maximum, shown in the description. */
export function networkRequest(ceiling: Network) {
  const injection = z
    .object({
      host: z
        .string()
        .max(MAX_RULE_CHARS)
        .meta({
          description:
            'One host, with or without a port. It must be in `allow`. The header is added to HTTPS requests, and to plain HTTP requests if a port other than 443 is given.',
          examples: ['api.github.com'],
        }),
      header: z
        .string()
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, { error: 'must be the name of an HTTP header' })
        .refine((name) => !RESERVED.has(name.toLowerCase()), {
          error: 'is a header that HTTP itself needs; use another one',
        })
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
            'Template of the header’s value. `{secret}` is replaced with the secret. Default: for `Authorization`, what the credential’s type needs (`Bearer …`, `Basic …`); for other headers, the secret itself.',
          examples: ['token {secret}'],
        }),
    })
    .meta({
      title: 'HeaderInjection',
      description:
        'A header with a credential that is added to each request to a host, outside the sandbox. Programs in the sandbox use the credential but can’t read it.',
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
              description:
                'Hosts: `host`, or `*.host` for all its subdomains. With `:port`, only that port; otherwise 80 and 443.',
              examples: [['pypi.org', '*.pythonhosted.org']],
            }),
          inject: z.array(injection).max(MAX_INJECTIONS).nullish(),
        }),
      ],
      { error: 'must be "disabled", "public", or {"allow": ["host", "*.host"]}' },
    )
    .meta({
      description: `What programs in the sandbox may connect to: nothing (\`"disabled"\`, the default), every public host (\`"public"\`), or a list of hosts. They use HTTP or HTTPS through a proxy that is set in the sandbox’s environment. Private addresses are always refused. The setting also applies to the browser; if it is absent, the browser may open public sites. ${describeCeiling(ceiling)}`,
    })
}

function describeCeiling(ceiling: Network): string {
  if (ceiling === 'public') return 'This server allows all of these.'
  if (ceiling === 'disabled') return 'This server allows only `"disabled"`.'
  return `This server allows at most: ${ceiling.allow.map((rule) => `\`${rule}\``).join(', ')}.`
}

/** Throws ErrandError `invalid_request` that names the field at or below `network`. */
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
    if (host.startsWith('*.'))
      throw wrongField(`${at}.host`, 'must be one host, not a wildcard: a credential is sent to named hosts only')
    if (!isAllowed(rules, host)) throw wrongField(`${at}.host`, 'must be in `network.allow`')
    const header = each.header ?? 'Authorization'
    const target = `${host} ${header.toLowerCase()}`
    if (seen.has(target)) throw wrongField(at, `sets the header ${header} of ${host} a second time`)
    seen.add(target)
    return { host, header, credentialId: each.credentialId, ...(each.format ? { format: each.format } : {}) }
  })
  return { ...rules, inject: injections }
}

function readRule(text: string, param: string): string {
  const read = readHostRule(text)
  if (typeof read === 'string') throw wrongField(param, read)
  return read.rule
}
