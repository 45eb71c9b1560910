/**
 * The seam between the wire and the domain: one codec a revision. Everything behind the edge speaks the domain's words;
 * what a revision calls a field, which fields it takes and how it shows an event is known here and nowhere else.
 *
 * Decoders throw ErrandError (`invalid_request`, `payload_too_large`) that names the field; they never drop a field in
 * silence: what they don't know they tell in `warnings`. Error bodies, paging and headers are the same in all revisions.
 */
import type { z } from 'zod'
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
import type { CredentialPatchRequest, NewCredentialRequest } from './credentials.ts'
import type { ServerFacts } from './server.ts'

/** `short`: usage with two fields, arguments of tool calls as JSON text (spec.md 2.5). */
export type Form = 'full' | 'short'

/** JSON for an answer's body. */
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

/** Its warnings stand in `run`: the engine stores them with the rest. */
export interface NewInteractionRequest {
  readonly run: RunRequest
  /** How the caller wants to be answered; no part of what is run. */
  readonly stream: boolean
  readonly background: boolean
}

export interface Presentation {
  readonly form: Form
  /** A signed address, minted anew at each call. */
  readonly fileUrl: (kind: FileKind, file: StoredFile) => string
}

/** An event as it goes out: its name, and one JSON object in one line. */
export type Frame = Pick<StoredEvent, 'data'> & { readonly type: string }

/** What the OpenAPI document shows. The request schemas are the ones that validate. */
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

export interface Codec {
  /** `YYYY-MM-DD`. */
  readonly revision: string
  readonly schemas: CodecSchemas
  decodeNewAgent(body: unknown): NewAgentRequest
  decodeAgentPatch(body: unknown): AgentPatchRequest
  decodeNewInteraction(body: unknown): NewInteractionRequest
  encodeAgent(agent: Agent, warnings?: readonly Warning[]): Body
  encodeAgentList(agents: readonly Agent[], nextPageToken: string | undefined): Body
  encodeAgentVersions(agents: readonly Agent[], nextPageToken: string | undefined): Body
  encodeInteraction(snapshot: InteractionSnapshot, presentation: Presentation): Body
  encodeInteractionList(
    items: readonly { readonly interaction: InteractionSummary; readonly usage: Usage }[],
    form: Form,
    nextPageToken: string | undefined,
  ): Body
  encodeEventList(events: readonly TimedEvent[], nextPageToken: string | undefined): Body
  /** Undefined where there was no body. */
  decodeApproval(body: unknown): Verdict
  encodeAudit(entries: readonly AuditEntry[], nextPageToken: string | undefined): Body
  decodeNewCredential(body: unknown): NewCredentialRequest
  decodeCredentialPatch(body: unknown): CredentialPatchRequest
  encodeCredential(credential: Credential, warnings?: readonly Warning[]): Body
  encodeCredentialList(credentials: readonly Credential[], nextPageToken: string | undefined): Body
  encodeSkill(details: SkillDetails): Body
  encodeAddedSkill(added: AddedSkill): Body
  encodeSkillList(skills: readonly Skill[], nextPageToken: string | undefined): Body
  encodeSkillVersions(skills: readonly Skill[], nextPageToken: string | undefined): Body
  encodeDeliveries(log: WebhookLog | undefined): Body
  /** What a webhook is sent of an interaction that is over. */
  encodeWebhookEvent(interaction: InteractionSummary): Body
  encodeServer(facts: ServerFacts, catalogue: Catalogue, limits: Limits): Body
  /** Undefined where this revision has no such event. The first revision gives the stored event back untouched. */
  encodeEvent(event: StoredEvent, form: Form): Frame | undefined
}
