import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An OpenID Connect provider that signs everyone in as `claims`; it verifies the PKCE code and the client. */
export interface OidcProvider {
  issuer: string;
  /** Claims of the person who signs in. */
  claims: Record<string, unknown>;
  /** Claims that only the user information has. */
  userInfo: Record<string, unknown>;
  /** Changes the ID token before it is signed. */
  change: (token: Record<string, unknown>) => Record<string, unknown>;
  /** The signature algorithm that the header of the ID token names. */
  algorithm: string;
  /** Requests of tokens that were refused. */
  refused: string[];
  /** Follows the address to which the console sent the browser; returns the address to which it returns. */
  authorize(location: string): Promise<string>;
  close(): Promise<void>;
}

const SECRET = 'client secret';
export const CLIENT = { id: 'postrider-console', secret: SECRET };

export async function startOidcProvider(now: () => number): Promise<OidcProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const codes = new Map<string, { challenge: string; nonce: string; redirect: string }>();
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

  function idToken(nonce: string): string {
    const seconds = Math.floor(now() / 1000);
    const payload = provider.change({
      iss: provider.issuer,
      aud: CLIENT.id,
      iat: seconds,
      exp: seconds + 300,
      nonce,
      ...provider.claims,
    });
    const text = `${encode({ alg: provider.algorithm, kid: 'k1' })}.${encode(payload)}`;
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
  }

  function token(form: URLSearchParams): [number, object] {
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const fault =
      code === undefined
        ? 'unknown code'
        : challenge !== code.challenge
          ? 'code_verifier does not match'
          : form.get('redirect_uri') !== code.redirect
            ? 'another redirect_uri'
            : form.get('client_secret') !== SECRET
              ? 'another client'
              : null;
    if (fault !== null || code === undefined) {
      provider.refused.push(fault ?? '');
      return [400, { error: 'invalid_grant', error_description: fault }];
    }
    return [
      200,
      { access_token: 'access', token_type: 'Bearer', expires_in: 300, id_token: idToken(code.nonce) },
    ];
  }

  async function respond(req: IncomingMessage): Promise<[number, object]> {
    const { issuer } = provider;
    switch (req.url) {
      case '/.well-known/openid-configuration':
        return [
          200,
          {
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            userinfo_endpoint: `${issuer}/userinfo`,
            jwks_uri: `${issuer}/jwks`,
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256'],
          },
        ];
      case '/jwks':
        return [
          200,
          { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'RS256', use: 'sig' }] },
        ];
      case '/userinfo':
        return [200, { ...provider.claims, ...provider.userInfo }];
      case '/token': {
        let body = '';
        for await (const chunk of req) body += String(chunk);
        return token(new URLSearchParams(body));
      }
      default:
        return [404, {}];
    }
  }

  const server = createServer((req, res) => {
    if (req.url?.startsWith('/authorize?') === true) {
      // The page on which a person would sign in.
      void provider.authorize(provider.issuer + req.url).then((location) => {
        res.writeHead(302, { Location: location }).end();
      });
      return;
    }
    void respond(req).then(([status, body]) => {
      res.writeHead(status, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider: OidcProvider = {
    // Sound: the server listens on a port.
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    claims: {},
    userInfo: {},
    change: (claims) => claims,
    algorithm: 'RS256',
    refused: [],
    authorize: async (location) => {
      const { searchParams: query } = new URL(location);
      const code = randomBytes(16).toString('hex');
      codes.set(code, {
        challenge: query.get('code_challenge') ?? '',
        nonce: query.get('nonce') ?? '',
        redirect: query.get('redirect_uri') ?? '',
      });
      const search = new URLSearchParams({ code, state: query.get('state') ?? '' });
      return `${query.get('redirect_uri')}?${search.toString()}`;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return provider;
}
