// Three projects: unit (no servers), integration (real Kafka, PostgreSQL, Redis), e2e (the services as processes).
const base = {
  rootDir: __dirname,
  testEnvironment: 'node',
  // Packages that ship ES modules only are compiled like our own sources: jest's require can't load them as they are.
  transformIgnorePatterns: ['/node_modules/(?!(temporal-polyfill|temporal-utils|temporal-spec)/)'],
  transform: {
    '^.+\\.[tj]s$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          target: 'es2022',
        },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  moduleNameMapper: {
    '^#contracts/(.*)$': '<rootDir>/libs/contracts/src/$1',
    '^#runtime/(.*)$': '<rootDir>/libs/runtime/src/$1',
    '^#time/(.*)$': '<rootDir>/libs/time/src/$1',
    '^#local-stack/(.*)$': '<rootDir>/tools/local-stack/src/$1',
    '^#simulator/(.*)$': '<rootDir>/tools/provider-simulator/src/$1',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
};

module.exports = {
  testTimeout: 60_000,
  projects: [
    { ...base, displayName: 'unit', testMatch: ['<rootDir>/{libs,services,tools}/**/*.unit.test.ts'] },
    {
      ...base,
      displayName: 'integration',
      testMatch: ['<rootDir>/{libs,services,tools,test-support}/**/*.integration.test.ts'],
      globalSetup: '<rootDir>/test-support/start-servers.ts',
      globalTeardown: '<rootDir>/test-support/stop-servers.ts',
    },
    {
      ...base,
      displayName: 'e2e',
      testMatch: ['<rootDir>/e2e/**/*.e2e.test.ts'],
      globalSetup: '<rootDir>/test-support/start-servers.ts',
      globalTeardown: '<rootDir>/test-support/stop-servers.ts',
    },
  ],
};
