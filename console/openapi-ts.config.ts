/** The console's client, made from the server's own OpenAPI document by script/clients. */
import { defineConfig } from '@hey-api/openapi-ts'

export default defineConfig({
  input: process.env.ERRAND_OPENAPI ?? 'http://127.0.0.1:8080/openapi.json',
  output: process.env.ERRAND_CLIENT ?? 'src/api',
  logs: { level: 'error' },
  plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
})
