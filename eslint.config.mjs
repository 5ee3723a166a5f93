import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const services = ['api', 'scheduler', 'sender', 'receipts'];

/** Arrows point inwards: adapters -> steps -> domain -> contracts. */
const pureFolders = [
  'libs/contracts/src/**/*.ts',
  'libs/time/src/**/*.ts',
  'services/api/src/schedule/**/*.ts',
  'services/scheduler/src/planning/**/*.ts',
  'services/sender/src/{gate,pace,outcome,lane}/**/*.ts',
  'services/receipts/src/status/**/*.ts',
];

const drivers = [
  'kafkajs',
  'pg',
  'ioredis',
  'undici',
  'typeorm',
  '@nestjs/*',
  'fastify',
  'node:fs',
  'node:fs/*',
  'node:net',
  'node:http',
  'node:https',
  'node:child_process',
  'node:worker_threads',
];

const kafkajsOnlyBehindThePort = { group: ['kafkajs', 'kafkajs/*'], message: 'Kafka is reached through #runtime/kafka only.' };
const noOtherService = (own) => ({
  group: services.filter((s) => s !== own).flatMap((s) => [`**/services/${s}/**`]),
  message: 'A service knows another only through events and the named database views.',
});

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', 'coverage/**', '.punctual/**'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs}'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        module: 'writable',
        require: 'readonly',
        __dirname: 'readonly',
        URL: 'readonly',
        Buffer: 'readonly',
      },
    },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['**/*.ts'],
    rules: {
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'off',
      'no-console': 'error',
      'no-constant-condition': ['error', { checkLoops: false }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-restricted-imports': ['error', { patterns: [kafkajsOnlyBehindThePort] }],
    },
  },
  ...services.map((service) => ({
    files: [`services/${service}/**/*.ts`],
    rules: { 'no-restricted-imports': ['error', { patterns: [kafkajsOnlyBehindThePort, noOtherService(service)] }] },
  })),
  { files: ['libs/runtime/src/kafka/**/*.ts', 'tools/local-stack/**/*.ts'], rules: { 'no-restricted-imports': 'off' } },
  {
    // The libraries know no service; the contracts know nothing but themselves.
    files: ['libs/**/*.ts'],
    ignores: ['**/*.test.ts', 'libs/runtime/src/kafka/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            kafkajsOnlyBehindThePort,
            { group: ['**/services/**', '**/tools/**'], message: 'A library knows no service.' },
          ],
        },
      ],
    },
  },
  {
    files: pureFolders,
    ignores: ['**/*.test.ts', 'libs/contracts/src/schemas.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { group: drivers, message: 'Domain folders have no driver.' },
            {
              group: ['**/{http,kafka,postgres,redis,providers}/**', '#runtime/{kafka,postgres,outbox,http}/**'],
              message: 'The domain does not know its adapters.',
            },
          ],
        },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: 'AwaitExpression', message: 'Domain folders do not wait: pass the value in.' },
        {
          selector: "CallExpression[callee.object.name='Date'][callee.property.name='now']",
          message: 'Time comes in as a value.',
        },
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'Time comes in as a value.' },
        { selector: "MemberExpression[object.name='performance'][property.name='now']", message: 'Time comes in as a value.' },
        {
          selector: "CallExpression[callee.object.name='Math'][callee.property.name='random']",
          message: 'Chance comes in as a value.',
        },
      ],
    },
  },
  {
    files: ['**/*.test.ts', 'test-support/**/*.ts', 'e2e/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: "CallExpression[callee.name='setTimeout']", message: 'Wait for a signal: waitUntil(what, condition).' },
      ],
    },
  },
  { files: ['tools/**/*.ts', 'bench/**/*.ts', '**/main.ts'], rules: { 'no-console': 'off' } },
);
