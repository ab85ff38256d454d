import { PAGE_LANGUAGES, pageLanguageOf } from '../../accounts/page-texts.ts';
import { CUSTOM_FIELD, type ProfileField, publicPagesOf } from '../../accounts/public-pages.ts';
import { readName, readPhone } from '../../audience/profile.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import {
  PAUSE_DAYS,
  type PreferenceChanges,
  type PreferenceState,
  type Preferences,
} from '../../suppression/preferences.ts';
import type { OptOutSource } from '../../suppression/unsubscribe.ts';
import { field } from './field.ts';
import type { FormFields } from './form-body.ts';
import { empty, type Html, html } from './html.ts';
import { pageResponse } from './layout.ts';
import { type Look, plainLook } from './look.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { masked, partiesOf } from './parties.ts';
import { faultPage, tooOftenPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';

/*
 * `/p/<token>`, with the token of the unsubscribe page. GET shows the preferences and changes nothing, because scanners
 * follow links. Each form is a POST with the field `action`, which takes effect immediately. Fields of a profile are named by
 * the hexadecimal form of their names.
 */

const ACTIONS = ['save', 'pause30', 'pause90', 'resume', 'stop', 'erase', 'withdraw'] as const;
type Action = (typeof ACTIONS)[number];

/** Rate of changes for each recipient of an account. Opting out of everything is not limited. */
const CHANGE_RATE: Rate = { burst: 20, perSecond: 20 / 3600 };
const MAX_RECIPIENTS = 20_000;
const MAX_VALUE_LENGTH = 200;

/** What the page says about the request that it answers. */
type Outcome =
  | { kind: 'shown' }
  | { kind: 'saved' }
  | { kind: 'not-confirmed' }
  /** Values that were refused: the text for each field, and what was entered. */
  | { kind: 'faulty'; faults: ReadonlyMap<string, Html>; fields: FormFields };

/** Keeps the rates of up to 20,000 recipients in memory. A POST is one unit of work, and the page follows when it is durable. */
export function preferencesRoute(
  { clock, tables, writer }: Pick<Context, 'clock' | 'tables' | 'writer'>,
  {
    tokens,
    hosts,
    preferences,
    storageRefusal,
  }: {
    tokens: Pick<Tokens, 'unsubscribeUrl'>;
    hosts: PageHosts;
    preferences: Preferences;
    /** Why nothing more is stored for an account; null: it is. */
    storageRefusal(accountId: string): Refusal | null;
  },
): PublicRoute {
  const changes = createTokenBuckets(clock, CHANGE_RATE, MAX_RECIPIENTS);

  function show(mail: SentMail, request: PublicRequest, outcome: Outcome): PublicResponse {
    const { look, sender } = partiesOf(tables, mail, request.acceptLanguage);
    const state = preferences.state(tables, mail);
    return state === null
      ? noPreferencesPage(look, sender, `/u/${request.token}`)
      : preferencesPage(
          { look, sender, state, editable: editableFields(tables, mail, state.contact) },
          outcome,
        );
  }

  async function change(mail: SentMail, action: Action, request: PublicRequest): Promise<PublicResponse> {
    const { fields, visitor } = request;
    if (action !== 'stop') {
      const { allowed, retryAfterSeconds } = changes.of(`${mail.accountId} ${mail.recipientHash}`).take();
      if (!allowed)
        return tooOftenPage(partiesOf(tables, mail, request.acceptLanguage).look, retryAfterSeconds);
    }
    if (action === 'erase' && fields.get('confirmed') !== 'yes')
      return show(mail, request, { kind: 'not-confirmed' });
    const source: OptOutSource = { method: 'page', ip: visitor.ip, userAgent: visitor.userAgent };
    if (action === 'save') return save(mail, source, request);
    const run: Record<Exclude<Action, 'save'>, (tx: Tables) => void> = {
      pause30: (tx) => preferences.pause(tx, mail, PAUSE_DAYS[0]),
      pause90: (tx) => preferences.pause(tx, mail, PAUSE_DAYS[1]),
      resume: (tx) => preferences.resume(tx, mail),
      stop: (tx) => preferences.stop(tx, mail, source),
      erase: (tx) => preferences.requestErasure(tx, mail, source),
      withdraw: (tx) => preferences.withdrawErasure(tx, mail),
    };
    await writer.run(run[action], mail.accountId);
    return show(mail, request, { kind: 'saved' });
  }

  async function save(mail: SentMail, source: OptOutSource, request: PublicRequest): Promise<PublicResponse> {
    const { fields } = request;
    const state = preferences.state(tables, mail);
    if (state === null) return show(mail, request, { kind: 'shown' });
    const { look } = partiesOf(tables, mail, request.acceptLanguage);
    const { profile, faults } = readProfile(look, fields, state, editableFields(tables, mail, state.contact));
    if (faults.size > 0) return show(mail, request, { kind: 'faulty', faults, fields });
    const shown = (fields.get('shown') ?? '').split(' ').filter((id) => id !== '');
    const groups = new Map(shown.map((id) => [id, fields.has(`group-${id}`)]));
    const joins = state.groups.some(
      ({ group, isOn }) => !isOn && groups.get(group.subscription_group_id) === true,
    );
    // Leaving a list is possible even when nothing more can be stored.
    const isMore = joins || Object.keys(profile).length > 0;
    if (isMore && storageRefusal(mail.accountId) !== null) return faultPage(look);
    const refusal = await writer.run(
      (tx) => preferences.save(tx, mail, { groups, profile }, source),
      mail.accountId,
    );
    if (isRefusal(refusal)) {
      const taken = new Map([[inputName('phone'), look.text('preferences.phoneTaken')]]);
      return show(mail, request, { kind: 'faulty', faults: taken, fields });
    }
    return show(mail, request, { kind: 'saved' });
  }

  return {
    name: 'p',
    methods: ['GET', 'POST'],
    handle: (request) => {
      const { method, host, token, fields, acceptLanguage } = request;
      const mail = tokens.unsubscribeUrl(token);
      if (mail === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (!isOwnHost(hosts, host, mail.accountId))
        return method === 'GET'
          ? redirectToPlatform(hosts, `/p/${token}`)
          : unknownLinkPage(plainLook(acceptLanguage));
      const action = ACTIONS.find((each) => each === fields.get('action'));
      return method === 'GET' || action === undefined
        ? show(mail, request, { kind: 'shown' })
        : change(mail, action, request);
    },
  };
}

/** A field of the profile as the page shows it. */
interface EditableField extends ProfileField {
  /** The name of a custom field; null: another field. */
  custom: string | null;
  value: string;
  /** The value is a number, and stays one. */
  isNumber: boolean;
}

/** The fields that the account chose, without those whose values are neither texts nor numbers. */
function editableFields(tables: Tables, mail: SentMail, contact: KnownContact): EditableField[] {
  // Sound: only the audience module writes the column.
  const custom = JSON.parse(contact.custom_fields) as Record<string, unknown>;
  const own: Record<string, string | null> = {
    firstName: contact.first_name,
    lastName: contact.last_name,
    phone: contact.phone,
  };
  return publicPagesOf(tables, mail.accountId).profileFields.flatMap((each): EditableField[] => {
    const name = CUSTOM_FIELD.exec(each.field)?.[1] ?? null;
    const value = name === null ? own[each.field] : custom[name];
    const isNumber = typeof value === 'number';
    if (value !== null && value !== undefined && typeof value !== 'string' && !isNumber) return [];
    return [{ ...each, custom: name, value: String(value ?? ''), isNumber }];
  });
}

/** Of a field of the profile in the form. Names of fields of a form are read in lower case. */
function inputName(field: string): string {
  return `field-${Buffer.from(field).toString('hex')}`;
}

/** The profile as it was entered. A field that was not sent, or that has the value that was shown, does not change. */
function readProfile(
  look: Look,
  fields: FormFields,
  { contact }: PreferenceState,
  editable: readonly EditableField[],
): { profile: PreferenceChanges['profile']; faults: Map<string, Html> } {
  const faults = new Map<string, Html>();
  const profile: Record<string, string | null> = {};
  const customFields: Record<string, string | number | null> = {};
  for (const { field: name, custom, value, isNumber } of editable) {
    const entered = fields.get(inputName(name));
    if (entered === undefined || entered === value) continue;
    const read = entered === '' ? { value: null } : name === 'phone' ? readPhone(entered) : readName(entered);
    const isWrong =
      'fault' in read || entered.length > MAX_VALUE_LENGTH || (isNumber && !Number.isFinite(Number(entered)));
    if (isWrong) {
      const text = name === 'phone' ? 'preferences.phoneFault' : 'preferences.textFault';
      faults.set(inputName(name), look.text(text));
    } else if (custom === null) profile[name] = read.value;
    else customFields[custom] = isNumber && read.value !== null ? Number(read.value) : read.value;
  }
  const chosen = fields.get('language');
  const language =
    chosen === undefined || chosen === (pageLanguageOf(contact.language) ?? '')
      ? undefined
      : pageLanguageOf(chosen);
  return {
    profile: {
      ...profile,
      ...(Object.keys(customFields).length === 0 ? {} : { customFields }),
      ...(language === undefined ? {} : { language }),
    },
    faults,
  };
}

interface PreferencesView {
  look: Look;
  sender: string;
  state: PreferenceState;
  editable: readonly EditableField[];
}

/** 200; 400 when a value was refused. */
function preferencesPage(view: PreferencesView, outcome: Outcome): PublicResponse {
  const { look, sender, state } = view;
  const { contact, isStopped, isBlocked } = state;
  const about = look.text('preferences.about', { sender, recipient: masked(contact.email ?? '') });
  const isRefused = outcome.kind === 'faulty' || outcome.kind === 'not-confirmed';
  return pageResponse(
    look,
    isRefused ? 400 : 200,
    'preferences.title',
    html`${outcomeNote(look, outcome)}<p>${about}</p>
${isBlocked ? html`<p class="note">${look.text('preferences.blocked', { sender })}</p>` : empty}
${isStopped && !isBlocked ? html`<p class="note">${look.text('preferences.stopped', { sender })}</p>` : empty}
${saveForm(view, outcome)}
${pauseSection(view)}
${isStopped ? empty : stopSection(view)}
${eraseSection(view, outcome)}`,
  );
}

function outcomeNote(look: Look, { kind }: Outcome): Html {
  if (kind === 'shown') return empty;
  if (kind === 'saved')
    return html`<p class="note" role="status">${look.text('preferences.saved')}</p>
`;
  const fault = kind === 'faulty' ? 'preferences.fault' : 'preferences.eraseMissing';
  return html`<p class="note fault" role="alert">${look.text(fault)}</p>
`;
}

function saveForm({ look, state, editable }: PreferencesView, outcome: Outcome): Html {
  const ids = state.groups.map(({ group }) => group.subscription_group_id);
  const sent = outcome.kind === 'faulty' ? outcome.fields : null;
  const switches = state.groups.map(({ group, isOn: isStored }) => {
    const id = `group-${group.subscription_group_id}`;
    const isOn = sent?.get('shown')?.includes(group.subscription_group_id) === true ? sent.has(id) : isStored;
    const about = group.description === null ? empty : html`<small>${group.description}</small>`;
    return html`<label class="switch"><span><bdi>${group.name}</bdi>${about}</span><input type="checkbox" role="switch" name="${id}" value="on"${isOn ? html` checked` : empty}></label>
`;
  });
  const lists = html`<fieldset>
<legend>${look.text('preferences.lists')}</legend>
<p class="soft">${look.text(ids.length === 0 ? 'preferences.noLists' : 'preferences.listsHint')}</p>
${switches}<input type="hidden" name="shown" value="${ids.join(' ')}">
</fieldset>`;
  const current = sent?.get('language') ?? pageLanguageOf(state.contact.language);
  const languages = Object.entries(PAGE_LANGUAGES).map(
    ([tag, name]) =>
      html`<option value="${tag}" lang="${tag}"${tag === current ? html` selected` : empty}>${name}</option>`,
  );
  const profile = html`<fieldset>
<legend>${look.text('preferences.profile')}</legend>
<div class="field"><label>${look.text('preferences.language')}<select name="language"><option value="">${look.text('preferences.automatic')}</option>${languages}</select></label></div>
${editable.map((each) => profileInput(look, each, outcome))}
</fieldset>`;
  return html`<form method="post">
<input type="hidden" name="action" value="save">
${lists}
${profile}
<button type="submit">${look.text('preferences.save')}</button>
</form>`;
}

const AUTOCOMPLETE: Readonly<Record<string, string>> = {
  firstName: 'given-name',
  lastName: 'family-name',
  phone: 'tel',
};

function profileInput(look: Look, each: EditableField, outcome: Outcome): Html {
  const name = inputName(each.field);
  const isFaulty = outcome.kind === 'faulty';
  const value = (isFaulty ? outcome.fields.get(name) : undefined) ?? each.value;
  const type = each.field === 'phone' ? 'tel' : 'text';
  return field(
    name,
    labelOf(look, each),
    html` type="${type}" autocomplete="${AUTOCOMPLETE[each.field] ?? 'off'}" maxlength="${String(MAX_VALUE_LENGTH)}" value="${value}"`,
    isFaulty ? (outcome.faults.get(name) ?? null) : null,
  );
}

/** The label of the account, else the text of the field, else the name of the custom field. */
function labelOf(look: Look, { field: name, custom, label, labels }: EditableField): Html {
  const own = labels[look.language] ?? label;
  if (own !== null) return html`${own}`;
  if (custom !== null) return html`<bdi>${custom}</bdi>`;
  if (name === 'phone') return look.text('preferences.phone');
  return look.text(name === 'firstName' ? 'preferences.firstName' : 'preferences.lastName');
}

function pauseSection({ look, sender, state: { contact } }: PreferencesView): Html {
  const until = contact.paused_until;
  const button = (
    action: Action,
    key: 'preferences.pause30' | 'preferences.pause90' | 'preferences.resume',
  ) =>
    html`<button type="submit" class="second" name="action" value="${action}">${look.text(key)}</button>
`;
  const [text, buttons] =
    until === null
      ? [
          look.text('preferences.pauseText', { sender }),
          html`${button('pause30', 'preferences.pause30')}${button('pause90', 'preferences.pause90')}`,
        ]
      : [look.text('preferences.paused', { date: look.date(until) }), button('resume', 'preferences.resume')];
  return html`<section aria-labelledby="pause">
<h2 id="pause">${look.text('preferences.pause')}</h2>
<p>${text}</p>
<form method="post" class="buttons">
${buttons}</form>
</section>`;
}

function stopSection({ look, sender }: PreferencesView): Html {
  return html`<section aria-labelledby="stop">
<h2 id="stop">${look.text('preferences.stop')}</h2>
<p>${look.text('preferences.stopText', { sender })}</p>
<form method="post"><button type="submit" class="second" name="action" value="stop">${look.text('unsubscribe.send')}</button></form>
</section>`;
}

function eraseSection({ look, sender, state: { contact } }: PreferencesView, outcome: Outcome): Html {
  const at = contact.erasure_requested_at;
  const isMissing = outcome.kind === 'not-confirmed';
  const content =
    at === null
      ? html`<p>${look.text('preferences.eraseText', { sender })}</p>
<form method="post">
<label><input type="checkbox" name="confirmed" value="yes" required${isMissing ? html` aria-invalid="true"` : empty}><span>${look.text('preferences.eraseConsent')}</span></label>
<button type="submit" class="danger" name="action" value="erase">${look.text('preferences.eraseSend')}</button>
</form>`
      : html`<p>${look.text('preferences.eraseRequested', { sender, date: look.date(at) })}</p>
<form method="post"><button type="submit" class="second" name="action" value="withdraw">${look.text('preferences.eraseWithdraw')}</button></form>`;
  return html`<section aria-labelledby="erase">
<h2 id="erase">${look.text('preferences.erase')}</h2>
${content}
</section>`;
}

/** 200 for a person who is no contact, or was erased: both look alike. `unsubscribe`: path of the unsubscribe page. */
function noPreferencesPage(look: Look, sender: string, unsubscribe: string): PublicResponse {
  return pageResponse(
    look,
    200,
    'preferences.noneTitle',
    html`<p>${look.text('preferences.none', { sender })}</p>
<p><a href="${unsubscribe}">${look.text('unsubscribe.send')}</a></p>`,
  );
}
