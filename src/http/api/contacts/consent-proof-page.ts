import type { ConsentProof } from '../../../audience/consent-proof.ts';
import { empty, type Html, html } from '../../public/html.ts';

/* The proof of consent as a page to print: HTML without scripts and external resources. */

const STYLE = `
:root{color-scheme:light}
body{margin:0 auto;max-width:52rem;padding:2rem 1.5rem;color:#1c2430;background:#fff;font:.9375rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}
h2{font-size:1.0625rem;margin:2rem 0 .5rem}
p{margin:0 0 .5rem;overflow-wrap:anywhere}
.soft{color:#4d5866}
dl{display:grid;grid-template-columns:minmax(9rem,14rem) 1fr;gap:.25rem 1rem;margin:0}
dt{color:#4d5866}
dd{margin:0;overflow-wrap:anywhere}
ol{margin:0;padding:0;list-style:none}
li{break-inside:avoid;border-top:1px solid #c5ccd4;padding:.75rem 0}
@media (max-width:32rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
@page{margin:18mm}
@media print{body{padding:0;max-width:none}}
`;

const STANDINGS = {
  given: 'Consent is given',
  opted_out: 'Consent was given; the person opted out later',
  withdrawn: 'Consent is withdrawn',
  none: 'There is no consent on record',
} as const;

const ACTIONS = {
  given: 'Consent given',
  withdrawn: 'Consent withdrawn or opted out',
  left_group: 'Left a group',
  returned_to_group: 'Returned to a group',
} as const;

/** A complete page. `sender`: the account, as its recipients know it. */
export function consentProofPage(proof: ConsentProof, sender: string): string {
  const name = [proof.firstName, proof.lastName].filter((part) => part !== undefined).join(' ');
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>Proof of consent: ${proof.email ?? proof.phone ?? proof.contactIdentifier}</title>
<style>${{ html: STYLE }}</style>
</head>
<body>
<main>
<h1>Proof of consent</h1>
<p class="soft">${sender}, ${proof.generatedAt}</p>
<p><strong>${STANDINGS[proof.status]}</strong></p>
<h2>Person</h2>
${facts([
  ['Name', name === '' ? undefined : name],
  ['Email address', proof.email],
  ['Phone number', proof.phone],
  ['Identifier', proof.contactIdentifier],
  ['Source', proof.source],
  ['Added by', proof.addedBy],
  ['Added', proof.createdAt],
])}
<h2>Consent in effect</h2>
${proof.consent === null ? html`<p>None.</p>` : entry(proof.consent)}
${proof.doubleOptIn.length === 0 ? empty : html`<h2>Double opt-in</h2><ol>${proof.doubleOptIn.map(signUp)}</ol>`}
<h2>Groups</h2>
${
  proof.memberships.length === 0
    ? html`<p>None.</p>`
    : html`<ol>${proof.memberships.map(
        (each) =>
          html`<li>${facts([
            ['Group', each.groupName ?? each.subscriptionGroupId],
            ['Member', each.isActive ? 'yes' : 'no'],
            ['Since', each.joinedAt],
            ['Source', each.source],
          ])}</li>`,
      )}</ol>`
}
<h2>History</h2>
${
  proof.history.length === 0
    ? html`<p>None.</p>`
    : html`<ol>${proof.history.map((each) => html`<li><p><strong>${ACTIONS[each.action]}</strong></p>${entry(each)}</li>`)}</ol>`
}
</main>
</body>
</html>
`;
  return page.html;
}

type Entry = NonNullable<ConsentProof['consent']> & { groupName?: string };

function entry(of: Entry): Html {
  return facts([
    ['Method', of.method],
    ['Group', of.groupName ?? of.subscriptionGroupId],
    ['Details', of.details],
    ['Time', of.timestamp],
    ['Address', of.ipAddress],
    ['Browser', of.userAgent],
    ['Recorded', of.recordedAt],
    ['Recorded by', of.recordedBy],
  ]);
}

function signUp(of: ConsentProof['doubleOptIn'][number]): Html {
  const { confirmationMail: mail, form } = of;
  return html`<li>${facts([
    ['Form of the group', form.group],
    ['Text of the form', form.description],
    ['Form sent', of.formSentAt],
    ['Confirmation mail', mail === null ? 'not stored any more' : mail.messageId],
    ['From', mail?.from],
    ['Subject', mail?.subject],
    ['Text of the mail', mail?.intro],
    ['Mail accepted', mail?.acceptedAt],
    ['Mail delivered', mail?.deliveredAt],
    ['Link confirmed', of.confirmedAt],
    ['Address', of.ipAddress],
    ['Browser', of.userAgent],
  ])}</li>`;
}

/** Names with values; those without a value are left out. */
function facts(of: readonly (readonly [name: string, value: string | undefined])[]): Html {
  const known = of.filter((fact): fact is readonly [string, string] => fact[1] !== undefined);
  return html`<dl>${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
