/** Credentials on the wire: written with their secret, answered without it. */
import { z } from 'zod'
import type { CredentialChange, NewCredential, OpenCredential } from '../../accounts/credentials.ts'
import type { Credential } from '../../domain/credential.ts'
import type { Warning } from '../../domain/event.ts'
import { check, unknownFields } from '../request/fields.ts'
import type { Body } from './codec.ts'
import { secretFields, secretType, toStoredSecret } from './secrets.ts'
import { rfc3339 } from './time.ts'

const MAX_NAME_CHARS = 512
const MAX_HOSTS = 20
const READ_ONLY = new Set(['createTime', 'updateTime', 'lastUsedTime', 'warnings'])

const host = z
  .string()
  .max(260)
  .regex(/^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$/, {
    error: 'must be a host such as "api.example.com", "*.example.com" or "api.example.com:8443"',
  })

const fields = {
  name: z
    .string()
    .max(MAX_NAME_CHARS)
    .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' })
    .refine((name) => name.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
    .nullish()
    .meta({ description: 'For people.', examples: ['Tracker, read-only'] }),
  allowedHosts: z
    .array(host)
    .min(1)
    .max(MAX_HOSTS)
    .nullish()
    .meta({
      description:
        'The only hosts that it may be sent to; without a port, the scheme’s own. Set it: without it, whoever can start a run in this project can have it sent anywhere.',
      examples: [['mcp.example.com', '*.api.example.com']],
    }),
  ...secretFields,
}

const newCredential = z
  .object({
    id: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/, {
        error: 'must be 1 to 63 lower-case letters, digits or hyphens, the first one a letter',
      })
      .nullish()
      .meta({
        description: 'An id of your own choice. Absent: the server makes one. Taken: 409.',
        examples: ['tracker'],
      }),
    type: secretType.meta({
      description:
        'How it signs in: `bearer` (token), `headers` (headers), `basic` (username, password), or `oauth2` (refreshToken or clientId and clientSecret or accessToken; tokenUrl, scopes).',
    }),
    ...fields,
  })
  .meta({
    title: 'NewCredential',
    description: 'A secret to be kept, encrypted, and used by id. It is never shown again.',
    examples: [{ id: 'tracker', type: 'bearer', token: 's3cr3t', allowedHosts: ['mcp.example.com'] }],
  })

const credentialPatch = z
  .object({ type: secretType.nullish().meta({ description: 'Another type needs all its fields.' }), ...fields })
  .meta({
    title: 'CredentialPatch',
    description: 'What is absent stays, `null` clears. Sending the secret’s field anew rotates it.',
    examples: [{ token: 'n3w-s3cr3t' }],
  })

const time = () => z.iso.datetime().meta({ examples: ['2026-05-20T09:30:00.000Z'] })

const credential = z
  .object({
    id: z.string().meta({ examples: ['tracker'] }),
    name: z.string().optional(),
    type: z.string().meta({ examples: ['bearer'] }),
    allowedHosts: z.array(z.string()).optional().meta({ description: 'Absent: it may be sent anywhere.' }),
    createTime: time(),
    updateTime: time().meta({ description: 'Also when a run renewed its token.' }),
    lastUsedTime: time().optional().meta({ description: 'To the minute.' }),
    warnings: z.array(z.looseObject({ code: z.string(), message: z.string() })).optional(),
  })
  .meta({ title: 'Credential', description: 'What may be seen of a credential: never its secret.' })

export const credentialSchemas = {
  newCredential,
  credentialPatch,
  credential,
  credentialList: z
    .object({
      credentials: z.array(credential),
      nextPageToken: z.string().optional().meta({ description: 'For the next page; absent on the last one.' }),
    })
    .meta({ title: 'CredentialList' }),
}

export interface NewCredentialRequest {
  readonly credential: NewCredential
  readonly warnings: readonly Warning[]
}

export interface CredentialPatchRequest {
  /** Throws ErrandError `invalid_request` where the two together make no credential. */
  readonly change: (current: OpenCredential) => CredentialChange
  readonly warnings: readonly Warning[]
}

export function decodeNewCredential(body: unknown): NewCredentialRequest {
  const sent = check(newCredential, body)
  return {
    credential: {
      id: sent.id ?? undefined,
      name: sent.name ?? undefined,
      allowedHosts: sent.allowedHosts ?? undefined,
      secret: toStoredSecret(sent.type, sent),
    },
    warnings: unknownFields(newCredential, body, READ_ONLY),
  }
}

export function decodeCredentialPatch(body: unknown): CredentialPatchRequest {
  const sent = check(credentialPatch, body)
  return {
    change({ credential: now, secret }) {
      return {
        name: sent.name === undefined ? now.name : (sent.name ?? undefined),
        allowedHosts: sent.allowedHosts === undefined ? now.allowedHosts : (sent.allowedHosts ?? undefined),
        secret: toStoredSecret(sent.type ?? secret.type, sent, secret),
      }
    },
    warnings: unknownFields(credentialPatch, body, new Set([...READ_ONLY, 'id'])),
  }
}

export function encodeCredential(credential: Credential, warnings: readonly Warning[] = []): Body {
  const { id, name, type, allowedHosts, createdAt, updatedAt, lastUsedAt } = credential
  return {
    id,
    name,
    type,
    allowedHosts,
    createTime: rfc3339(createdAt),
    updateTime: rfc3339(updatedAt),
    lastUsedTime: lastUsedAt === undefined ? undefined : rfc3339(lastUsedAt),
    ...(warnings.length > 0 ? { warnings } : {}),
  }
}
