/**
 * The client command of the public conformance suite, run once per scenario: `… <server-url>`. It starts an interaction
 * on a real Errand server (ERRAND_URL, ERRAND_KEY) whose scripted model calls every offered tool, so that the suite
 * tests Errand's own client with its API, engine and egress guard.
 */
const METADATA_URL = 'https://conformance-test.local/client-metadata.json'
const url = process.argv.at(-1)!
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')

const answer = await fetch(`${process.env.ERRAND_URL}/v1beta/interactions`, {
  method: 'POST',
  headers: { 'x-svc-api-key': process.env.ERRAND_KEY!, 'content-type': 'application/json' },
  body: JSON.stringify({
    instruction: `Conformance: ${scenario}`,
    mcp: [{ name: 'suite', url, authentication: authentication() }],
    policy: { maxTurnDuration: 25 },
  }),
})
const body = (await answer.json()) as { status?: string }
console.log(JSON.stringify(body, null, 1))
process.exit(body.status === 'completed' ? 0 : 1)

function authentication(): object | undefined {
  if (!scenario.startsWith('auth/')) return undefined
  // A client id that is a metadata URL. The suite expects this one.
  if (scenario === 'auth/basic-cimd') return { type: 'oauth2', clientId: METADATA_URL }
  return {
    type: 'oauth2',
    clientId: context.client_id,
    clientSecret: context.client_secret,
    privateKey: context.private_key_pem,
    signingAlgorithm: context.signing_algorithm,
  }
}
