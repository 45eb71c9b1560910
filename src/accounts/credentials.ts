/** The credentials of a project: the port. Every operation is within a project; another's answers as one that is not there. */
import type { Credential, Secret } from '../domain/credential.ts'

export interface NewCredential {
  /** Chosen by the caller, checked; one is made where it is absent. */
  readonly id?: string
  readonly name?: string
  readonly allowedHosts?: readonly string[]
  readonly secret: Secret
}

export interface CredentialPage {
  readonly credentials: readonly Credential[]
  /** What `after` takes for the page behind; undefined on the last one. */
  readonly next: string | undefined
}

/** A credential with its secret, for whoever is about to use it. */
export interface OpenCredential {
  readonly credential: Credential
  readonly secret: Secret
  /** Rises with each change. */
  readonly version: number
}

export type CredentialChange = Omit<NewCredential, 'id'>

export interface Credentials {
  /** Throws ErrandError `conflict` where the id is taken. */
  create(projectId: string, credential: NewCredential): Promise<Credential>
  find(projectId: string, id: string): Promise<Credential | undefined>
  list(
    projectId: string,
    query: { readonly order: 'asc' | 'desc'; readonly pageSize: number; readonly after?: string },
  ): Promise<CredentialPage>
  /**
   * Writes what `change` makes of it, whole. Where another writer came first, `change` is asked again. Throws ErrandError
   * `not_found`, and what `change` throws.
   */
  update(projectId: string, id: string, change: (current: OpenCredential) => CredentialChange): Promise<Credential>
  /** False where there is none. */
  remove(projectId: string, id: string): Promise<boolean>
  /** For use; that it was used is noted. */
  open(projectId: string, id: string): Promise<OpenCredential | undefined>
  /** Replaces the secret where nobody has changed it since `version`; the new version, or undefined where somebody has. */
  renew(projectId: string, id: string, version: number, secret: Secret): Promise<number | undefined>
}
