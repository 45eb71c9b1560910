/** The interface to a project's credentials. Another project's credentials look as if they did not exist. */
import type { Credential, Secret } from '../domain/credential.ts'

export interface NewCredential {
  /** Chosen by the caller and validated. Absent: generated. */
  readonly id?: string
  readonly name?: string
  readonly allowedHosts?: readonly string[]
  readonly secret: Secret
}

export interface CredentialPage {
  readonly credentials: readonly Credential[]
  /** The `after` of the next page. Undefined on the last page. */
  readonly next: string | undefined
}

/** A credential with its decrypted secret. */
export interface OpenCredential {
  readonly credential: Credential
  readonly secret: Secret
  /** Incremented with each change. */
  readonly version: number
}

export type CredentialChange = Omit<NewCredential, 'id'>

export interface Credentials {
  /** Throws ErrandError `conflict` if the id exists. */
  create(projectId: string, credential: NewCredential): Promise<Credential>
  find(projectId: string, id: string): Promise<Credential | undefined>
  list(
    projectId: string,
    query: { readonly order: 'asc' | 'desc'; readonly pageSize: number; readonly after?: string },
  ): Promise<CredentialPage>
  /**
   * Replaces the credential with the result of `change`, which is called again if another writer was first. Throws
   * ErrandError `not_found`, and what `change` throws.
   */
  update(projectId: string, id: string, change: (current: OpenCredential) => CredentialChange): Promise<Credential>
  /** Returns false if there is no such credential. */
  remove(projectId: string, id: string): Promise<boolean>
  /** Returns the credential with its secret, and records that it was used. */
  open(projectId: string, id: string): Promise<OpenCredential | undefined>
  /** Replaces the secret if it has not changed since `version`. Returns the new version, or undefined if it has changed. */
  renew(projectId: string, id: string, version: number, secret: Secret): Promise<number | undefined>
}
