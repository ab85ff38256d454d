import type { ErrorKey } from '../../../http/console/access.ts';

/**
 * Errors by reason or code. `{message}` is the sentence of the server, in English: where it names what is wrong. Other errors
 * have that sentence alone.
 */
export const errors = {
  INVALID_LINK:
    'Dieser Link wurde schon benutzt, ist abgelaufen oder unvollständig. Lassen Sie sich einen neuen geben.',
  WRONG_CREDENTIALS: 'Adresse, Passwort oder Code stimmen nicht.',
  TOTP: 'Geben Sie den Code der Authenticator-App ein.',
  TOTP_NOT_SET_UP:
    'Ein Passwort meldet nur zusammen mit einer Authenticator-App an. Melden Sie sich mit einem Link an, und richten Sie sie ein.',
  UNKNOWN_PASSKEY: 'Dieser Passkey ist hier nicht bekannt, oder die Anmeldung hat zu lange gedauert.',
  PROVIDER_REFUSED: 'Der Anbieter hat die Anmeldung abgelehnt.',
  REAUTHENTICATION:
    'Bestätigen Sie mit Passkey oder Passwort, dass Sie es sind. Ohne beides melden Sie sich mit einem neuen Link an.',
  SUPPRESSION_FILE:
    'Die Datei enthält gesperrte Adressen eines anderen Dienstes und wird nicht als Kontakte importiert. {message}',
  VALIDATION_ERROR: 'Eine Angabe ist ungültig. {message}',
  INVALID_STATE: 'Das ist im jetzigen Zustand nicht möglich. {message}',
  LIMIT_REACHED: 'Eine Grenze ist erreicht. {message}',
  UNAVAILABLE: 'Das ist gerade nicht möglich. Versuchen Sie es später erneut. {message}',
  COMPLIANCE_TEMPLATE_MISSING: 'Dem Inhalt fehlen Pflichtangaben. {message}',
  TEMPLATE_VARIABLE_MISSING: 'Eine Variable der Vorlage hat keinen Wert. {message}',
  TEMPLATE_SYNTAX: 'Der Inhalt enthält die Syntax einer anderen Vorlagensprache. {message}',
  DOMAIN_NOT_REGISTERED: 'Die Domain des Absenders ist nicht registriert. {message}',
  DOMAIN_NOT_VERIFIED: 'Die Domain des Absenders ist nicht verifiziert. {message}',
  USE_CASE_MISMATCH: 'Die Domain ist nicht für diese Art von Mail registriert. {message}',
  COMPANY_ADDRESS_MISSING: 'Dem Konto fehlen Name und Postadresse der Firma. Tragen Sie beides ein.',
  CONSENT_REQUIRED: 'Der Kontakt hat nicht in Werbemails eingewilligt.',
  RECIPIENT_UNSUBSCRIBED: 'Der Empfänger hat sich abgemeldet.',
  RECIPIENT_SUPPRESSED: 'Die Adresse des Empfängers ist gesperrt.',
  ACCOUNT_DISABLED: 'Das Konto ist deaktiviert.',
  INSUFFICIENT_SCOPE: 'Ihre Rolle erlaubt das nicht.',
  ACCOUNT_NOT_FOUND: 'Dieses Konto gibt es nicht.',
  KEY_NOT_FOUND: 'Diesen Schlüssel gibt es nicht.',
  DOMAIN_NOT_FOUND: 'Diese Domain gibt es nicht.',
  GROUP_NOT_FOUND: 'Diese Domaingruppe gibt es nicht.',
  SUBSCRIPTION_GROUP_NOT_FOUND: 'Diese Gruppe gibt es nicht.',
  SUBSCRIPTION_NOT_FOUND: 'Der Kontakt ist nicht in der Gruppe.',
  CONTACT_NOT_FOUND: 'Diesen Kontakt gibt es nicht.',
  WEBHOOK_NOT_FOUND: 'Diesen Webhook gibt es nicht.',
  CAMPAIGN_NOT_FOUND: 'Diese Kampagne gibt es nicht.',
  MESSAGE_NOT_FOUND: 'Diese Nachricht gibt es nicht.',
  TEMPLATE_NOT_FOUND: 'Diese Vorlage oder Fassung gibt es nicht.',
  NOT_FOUND: 'Das gibt es nicht oder nicht mehr.',
  REQUEST_TIMEOUT: 'Die Anfrage hat zu lange gedauert. Versuchen Sie es erneut.',
  CONTACT_ALREADY_EXISTS: 'Einen Kontakt mit dieser Adresse oder Nummer gibt es schon.',
  GROUP_NOT_EMPTY: 'Die Gruppe ist nicht leer.',
  IDEMPOTENCY_IN_PROGRESS: 'Dieselbe Anfrage wird noch bearbeitet.',
  PAYLOAD_TOO_LARGE: 'Die Daten sind zu groß.',
  RATE_LIMITED: 'Zu viele Anfragen oder Versuche. Warten Sie einen Augenblick, und versuchen Sie es erneut.',
  QUERY_TOO_BROAD: 'Die Suche umfasst zu viele Einträge. Grenzen Sie sie mit einem Filter ein.',
  INTERNAL_ERROR: 'Interner Fehler. Das Log enthält die Einzelheiten.',
} as const satisfies Partial<Record<ErrorKey, string>>;

export type ErrorTexts = Readonly<Record<keyof typeof errors, string>>;
