/**
 * The interface between HTTP bodies and the domain. Each API revision implements one `Codec`. Only a codec knows which
 * fields a revision takes, what they are called, and how a revision shows an event.
 *
 * Decoders throw ErrandError (`invalid_request`, `payload_too_large`) that names the field. A field that they do not know
 * becomes a warning; it is never dropped silently. Error bodies, paging and headers are the same in all revisions.
 */
import type { z } from 'zod'
import type { CredentialChange, NewCredential, OpenCredential } from '../../accounts/credentials.ts'
import type { Agent, AgentConfig, AgentPatch } from '../../domain/agent.ts'
import type { Credential } from '../../domain/credential.ts'
import type { StoredEvent, Warning } from '../../domain/event.ts'
import type { InteractionSummary, RunRequest, StoredFile } from '../../domain/interaction.ts'
import type { Limits } from '../../domain/limits.ts'
import type { Skill } from '../../domain/skill.ts'
import type { Usage } from '../../domain/usage.ts'
import type { WebhookLog } from '../../domain/webhook.ts'
import type { Verdict } from '../../engine/agent/approval.ts'
import type { InteractionSnapshot } from '../../engine/engine.ts'
import type { Catalogue } from '../../models/port.ts'
import type { AddedSkill, SkillDetails } from '../../skills/port.ts'
import type { AuditEntry } from '../../store/audit.ts'
import type { TimedEvent } from '../../store/events.ts'
import type { FileKind } from '../response/signed-urls.ts'
import type { ServerFacts } from '../server-facts.ts'

/** `short`: usage has two fields, and tool calls have their arguments as JSON text. */
export type Form = 'full' | 'short'

/** A JSON response body. */
export type Body = Readonly<Record<string, unknown>>

export interface NewAgentRequest {
  readonly id?: string
  readonly config: AgentConfig
  readonly warnings: readonly Warning[]
}

export interface AgentPatchRequest {
  readonly patch: AgentPatch
  readonly warnings: readonly Warning[]
}

export interface NewInteractionRequest {
  /** Includes the warnings: the engine stores them with the run. */
  readonly run: RunRequest
  readonly stream: boolean
  readonly background: boolean
}

export interface NewCredentialRequest {
  readonly credential: NewCredential
  readonly warnings: readonly Warning[]
}

export interface CredentialPatchRequest {
  /** Throws ErrandError `invalid_request` if the patched credential is not valid. */
  readonly change: (current: OpenCredential) => CredentialChange
  readonly warnings: readonly Warning[]
}

export interface Presentation {
  readonly form: Form
  /** Signs a new download URL at each call. */
  readonly fileUrl: (kind: FileKind, file: StoredFile) => string
}

/** One message of an event stream: its name, and a JSON object on one line. */
export interface Frame {
  readonly type: string
  readonly data: string
}

/**
 * Encodes the events of one stream, in order. May keep state between events. Returns the frames of one event: one,
 * several, or none if the revision does not have the event.
 */
export type EventEncoder = (event: StoredEvent) => readonly Frame[]

/** Schemas for the OpenAPI document. The request schemas also validate. */
export interface CodecSchemas {
  readonly newAgent: z.ZodType
  readonly agentPatch: z.ZodType
  readonly newInteraction: z.ZodType
  readonly agent: z.ZodType
  readonly agentList: z.ZodType
  readonly agentVersions: z.ZodType
  readonly interaction: z.ZodType
  readonly interactionList: z.ZodType
  readonly eventStream: z.ZodType
  readonly streamEvent: z.ZodType
  readonly eventList: z.ZodType
  readonly approval: z.ZodType
  readonly audit: z.ZodType
  readonly newCredential: z.ZodType
  readonly credentialPatch: z.ZodType
  readonly credential: z.ZodType
  readonly credentialList: z.ZodType
  readonly skill: z.ZodType
  readonly skillList: z.ZodType
  readonly skillVersions: z.ZodType
  readonly deliveries: z.ZodType
  readonly webhookEvent: z.ZodType
  readonly server: z.ZodType
}

type NextPage = string | undefined

export interface AgentCodec {
  decodeNew(body: unknown): NewAgentRequest
  decodePatch(body: unknown): AgentPatchRequest
  encode(agent: Agent, warnings?: readonly Warning[]): Body
  encodeList(agents: readonly Agent[], nextPageToken: NextPage): Body
  encodeVersions(agents: readonly Agent[], nextPageToken: NextPage): Body
}

export interface InteractionCodec {
  decodeNew(body: unknown): NewInteractionRequest
  encode(snapshot: InteractionSnapshot, presentation: Presentation): Body
  encodeList(
    items: readonly { readonly interaction: InteractionSummary; readonly usage: Usage }[],
    form: Form,
    nextPageToken: NextPage,
  ): Body
}

export interface EventCodec {
  /** Returns a new encoder for one stream. A resumed stream gets one that has not seen the earlier events. */
  openEncoder(form: Form): EventEncoder
  encodeList(events: readonly TimedEvent[], nextPageToken: NextPage): Body
}

export interface CredentialCodec {
  decodeNew(body: unknown): NewCredentialRequest
  decodePatch(body: unknown): CredentialPatchRequest
  encode(credential: Credential, warnings?: readonly Warning[]): Body
  encodeList(credentials: readonly Credential[], nextPageToken: NextPage): Body
}

export interface SkillCodec {
  encode(details: SkillDetails): Body
  encodeAdded(added: AddedSkill): Body
  encodeList(skills: readonly Skill[], nextPageToken: NextPage): Body
  encodeVersions(skills: readonly Skill[], nextPageToken: NextPage): Body
}

export interface WebhookCodec {
  /** The webhook’s delivery attempts. `log` is undefined if the interaction has no webhook. */
  encodeDeliveries(log: WebhookLog | undefined): Body
  /** The body that is sent to the webhook when the interaction has ended. */
  encodeEvent(interaction: InteractionSummary): Body
}

export interface Codec {
  /** `YYYY-MM-DD`. */
  readonly revision: string
  readonly schemas: CodecSchemas
  readonly agents: AgentCodec
  readonly interactions: InteractionCodec
  readonly events: EventCodec
  /** `body` is undefined if the request has none. */
  readonly approvals: { decode(body: unknown): Verdict }
  readonly audit: { encodeList(entries: readonly AuditEntry[], nextPageToken: NextPage): Body }
  readonly credentials: CredentialCodec
  readonly skills: SkillCodec
  readonly webhooks: WebhookCodec
  readonly server: { encode(facts: ServerFacts, catalogue: Catalogue, limits: Limits): Body }
}
