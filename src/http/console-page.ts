/** The console's page before anything is known: each state that it can be in, all but none of them hidden. */
import { html } from './docs-html.ts'

export const CONSOLE: string = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Errand console</title>
<link rel="stylesheet" href="/console/style.css">
<link rel="icon" href="data:,">
<script type="module" src="/console/script.js"></script>
</head>
<body>
<header class="bar">
<a class="brand" href="/console">Errand <span>console</span></a>
<nav aria-label="Elsewhere"><a href="/docs">Docs</a><a href="/openapi.json">OpenAPI</a><button id="leave" type="button" class="quiet" hidden>Forget key</button></nav>
</header>
<main>
<noscript><p>The console needs JavaScript. Without it: <code>script/errand doctor</code> tells the same, and so does <code>GET /v1beta/server</code>.</p></noscript>
<form id="door" class="card" method="post" autocomplete="off" novalidate hidden>
<h1>Open the console</h1>
<p>With an API key of this server. It is kept in this tab until you close it, and sent nowhere else.</p>
<label for="key">API key</label>
<div class="field"><input id="key" type="password" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="errand_sk_…" aria-describedby="wrong"><button type="submit">Open</button></div>
<p id="wrong" class="wrong" role="alert"></p>
<p class="hint">No key at hand? On the server’s machine: <code>script/errand keys create --name me</code></p>
</form>
<p id="asking" class="asking" role="status" hidden>Asking the server …</p>
<section id="trouble" class="card" role="alert" hidden>
<h1></h1>
<p></p>
<div class="choices"><button id="again" type="button">Try again</button><button id="other" type="button" class="quiet">Use another key</button></div>
</section>
<div id="server" hidden></div>
</main>
</body>
</html>
`.html
