import { request } from './api.ts';

/* Passkeys in the browser. The server creates the challenges and verifies the responses. */

/** The response of one of the person's passkeys to a new challenge, for `…/session/passkey/verify` and `confirm`. */
export async function signWithPasskey(): Promise<unknown> {
  const options = await request<PublicKeyCredentialRequestOptionsJSON>('/console/session/passkey/options', {
    method: 'POST',
  });
  return jsonOf(
    await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }),
  );
}

/** Creates a passkey for the person who is signed in. */
export async function createPasskey(name: string): Promise<void> {
  const options = await request<PublicKeyCredentialCreationOptionsJSON>('/console/me/passkeys/options', {
    method: 'POST',
  });
  const response = jsonOf(
    await navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
    }),
  );
  await request('/console/me/passkeys', { method: 'POST', body: { name, response } });
}

function jsonOf(credential: Credential | null): unknown {
  if (!(credential instanceof PublicKeyCredential)) throw new Error('The browser returned no passkey');
  return credential.toJSON();
}
